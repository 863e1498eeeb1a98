"""Forecasts of ggml's operators by their shapes."""

from __future__ import annotations

import pytest

from perfsuite.expectation.shapes.forecast import ShapeForecasts, operator_shape
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.workload.shapes.operation_shape import OperationShape

from ...synthetic_calibration import N_THREADS, lawful_ns, points_of


@pytest.fixture(scope="module")
def times() -> OperatorTimes:
    """Return the fits to the standard grid on a device that follows the law."""
    return OperatorTimes(points_of(standard_shapes()), n_threads=N_THREADS)


@pytest.mark.parametrize(
    ("shape_id", "expected"),
    [
        ("gemm/m7-n64-k128/q8_0", OperatorShape(op="MUL_MAT", type="q8_0", n_inner=128, n_outer=64, n_tokens=7)),
        ("gemv/n64-k128/q8_0", OperatorShape(op="MUL_MAT", type="q8_0", n_inner=128, n_outer=64)),
        (
            "bmm/b9-m2-n64-k32/f16",
            OperatorShape(op="MUL_MAT", type="f16", n_inner=32, n_outer=64, n_tokens=2, n_heads=9, n_kv_heads=9),
        ),
        (
            "attention/heads8-kvheads2-head64-context300/f16",
            OperatorShape(op="FLASH_ATTN_EXT", type="f16", n_inner=64, n_heads=8, n_kv_heads=2, n_past=299),
        ),
    ],
)
def test_an_operation_is_found_by_ggmls_sizes(shape_id: str, expected: OperatorShape) -> None:
    """Rows of weights are n_outer, tokens m, products of a batch heads, and a query is the last position it sees."""
    assert operator_shape(OperationShape.from_id(shape_id)) == expected


def test_the_forecast_is_that_of_the_operator_alone(times: OperatorTimes) -> None:
    """Where operators follow the law exactly, so does the forecast, between its bounds and below its limit."""
    shape = OperationShape.from_id("gemv/n4096-k4096/q8_0")
    expectation = ShapeForecasts(times=times, tolerance_ratio=2.5, least_ns=1000).expectation(shape)
    expected_ns, lower_ns, upper_ns = expectation.expected_ns, expectation.lower_ns, expectation.upper_ns
    assert expected_ns == pytest.approx(lawful_ns(operator_shape(shape)), rel=0.03)
    assert lower_ns is not None
    assert upper_ns is not None
    assert lower_ns < expected_ns < upper_ns
    assert expectation.limit_ns == pytest.approx(2.5 * upper_ns, abs=3)
    assert expectation.floor_ns is None


def test_a_short_forecast_has_no_limit(times: OperatorTimes) -> None:
    """What is left out of a forecast is as long as an operator of a microsecond."""
    shape = OperationShape.from_id("gemv/n1-k32/q8_0")
    assert ShapeForecasts(times=times, tolerance_ratio=2.5, least_ns=100_000).expectation(shape).limit_ns is None


def test_a_type_that_was_never_measured_has_a_wider_interval(times: OperatorTimes) -> None:
    """Attention over a quantised cache stands on that over F16, and is bounded less."""
    forecasts = ShapeForecasts(times=times, tolerance_ratio=2.5, least_ns=0)
    widths = []
    for type in ("f16", "q8_0"):
        found = forecasts.expectation(OperationShape.from_id(f"attention/heads8-kvheads8-head64-context900/{type}"))
        assert found.upper_ns is not None
        assert found.expected_ns is not None
        widths.append(found.upper_ns / found.expected_ns)
    assert widths[1] > 1.5 * widths[0]
