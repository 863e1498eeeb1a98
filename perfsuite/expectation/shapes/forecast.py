"""What a calibration forecasts of one of ggml's operators that is measured by its shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from perfsuite.expectation.forecast import Expectation, with_forecast
from perfsuite.expectation.timing.engine_times import COVERAGE_RATIO, TimeForecast
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.workload.shapes.operation import Operation
from perfsuite.workload.shapes.operation_shape import OperationShape


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeForecasts:
    """A calibration's operators, with how strictly the device is judged by them."""

    times: OperatorTimes
    #: How many times the upper bound an operator may take; the profile's of calibrated operators.
    tolerance_ratio: float
    #: Forecasts shorter than this bound nothing.
    least_ns: int

    def expectation(self, shape: OperationShape) -> Expectation:
        """Forecast an operator alone: expected, its interval, and the limit where the forecast is long enough.

        upper = expected exp(z s), s the spread of the logarithm that the operator's fit leaves, z the normal quantile
        of an interval for nine of ten; limit = upper x tolerance. What the engine adds to operators within its graphs
        is left out, for these stand alone.
        """
        time = self.times.time(operator_shape(shape))
        width = math.exp(NormalDist().inv_cdf((1.0 + COVERAGE_RATIO) / 2.0) * time.spread_ratio)
        forecast = TimeForecast(expected_ns=time.time_ns, lower_ns=time.time_ns / width, upper_ns=time.time_ns * width)
        return with_forecast(Expectation(), forecast, tolerance_ratio=self.tolerance_ratio, least_ns=self.least_ns)


def operator_shape(shape: OperationShape) -> OperatorShape:
    """Return the sizes by which a calibration knows an operation: ggml's rows of weights are its n, tokens its m.

    Batches of a BMM are heads, each with keys of its own. Attention's query sees the whole context, of which the last
    position is its own.
    """
    if shape.operation is Operation.ATTENTION:
        return OperatorShape(
            op="FLASH_ATTN_EXT",
            type=shape.type,
            n_inner=shape.of("head"),
            n_heads=shape.of("heads"),
            n_kv_heads=shape.of("kvheads"),
            n_past=shape.of("context") - 1,
        )
    n_batch = shape.of("b") if shape.operation is Operation.BMM else 0
    return OperatorShape(
        op="MUL_MAT",
        type=shape.type,
        n_inner=shape.of("k"),
        n_outer=shape.of("n"),
        n_tokens=1 if shape.operation is Operation.GEMV else shape.of("m"),
        n_heads=n_batch,
        n_kv_heads=n_batch,
    )
