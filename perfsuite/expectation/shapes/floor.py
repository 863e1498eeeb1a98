"""What an operation should cost at a shape: padded to tiles, under the ceilings, and by a calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from perfsuite.expectation.forecast import with_forecast
from perfsuite.expectation.operators.tiling import padded
from perfsuite.expectation.timing.engine_times import COVERAGE_RATIO, TimeForecast
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.records.case import Expectation
from perfsuite.records.ceilings import Ceilings
from perfsuite.units import NS_PER_S
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import ShapeCase


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


#: The suite's kernels step along the inner dimension by so many values.
INNER_STEP = 32

#: What sizes of ggml's operators are rounded up to: the widest block of rows that its kernels handle at once.
ROUND_SIZE = 32

#: Dimensions that the suite's kernels cut into tiles; the others are as they are, each index a work-group of its own.
TILED_DIMENSIONS: dict[Operation, tuple[str, ...]] = {
    Operation.GEMM: ("m", "n"),
    Operation.BMM: ("n",),
    Operation.GEMV: ("n",),
    Operation.ATTENTION: ("context",),
}


def dimension_steps(case: ShapeCase) -> dict[str, int]:
    """Return by how much each dimension that is padded grows at once."""
    tile = ROUND_SIZE if case.tiling is None else case.tiling.tile
    inner = ROUND_SIZE if case.tiling is None else INNER_STEP
    return {**dict.fromkeys(TILED_DIMENSIONS[case.operation], tile), case.operation.inner_dimension: inner}


def padded_shape(case: ShapeCase) -> OperationShape:
    """Return the shape with each padded dimension rounded up to whole steps."""
    steps = dimension_steps(case)
    return case.shape.with_sizes(**{name: padded(case.shape.of(name), step) for name, step in steps.items()})


def floor_ns(shape: OperationShape, ceilings: Ceilings) -> float:
    """Return the least time of one launch, ns: max(FLOPs / fastest arithmetic, bytes / fastest bandwidth).

    The arithmetic is the fastest for the stored type: its own, and what it is widened to; quantised weights may be
    multiplied as integers, or as floats of either width. A compiler of OpenCL kernels may leave the processor's integer
    dot products unused, which makes them no less possible. The bytes are the least that must move, each operand read
    once and the output written once; they are the working set as well, for a shape is measured again and again and
    finds in a cache what fits there. Work on padding is not counted, nor is the start of a launch: both only add to it.

    *Source*: Williams, Waterman and Patterson, Roofline, CACM 52(4), 2009.
    """
    rates = [ceilings.fp32_flops_per_s]
    if shape.type != "f32":
        rates.append(ceilings.f16_flops_per_s or 0.0)
    if shape.type not in ("f32", "f16"):
        rates.append(ceilings.int8_flops_per_s or 0.0)
    compute_s = shape.flops / max(rates)
    memory_s = shape.moved_bytes / ceilings.fastest_bandwidth_bytes_per_s(shape.moved_bytes)
    return max(compute_s, memory_s) * NS_PER_S
