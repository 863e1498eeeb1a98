"""The least time that ceilings allow an operation at a shape."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.shapes.floor import (
    INNER_STEP,
    ROUND_SIZE,
    ShapeForecasts,
    dimension_steps,
    floor_ns,
    operator_shape,
    padded_shape,
)
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation, OperationShape, block_values
from perfsuite.workload.shapes.shape_case import TILES

from ...synthetic_calibration import N_THREADS, lawful_ns, points_of
from ...synthetic_shapes import ceilings, ggml, tiled


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


def test_what_is_known_less_is_bounded_less(times: OperatorTimes) -> None:
    """A forecast of a microsecond has no limit; attention over a cache of a type that was not measured is less sure."""
    shape = OperationShape.from_id("gemv/n1-k32/q8_0")
    assert ShapeForecasts(times=times, tolerance_ratio=2.5, least_ns=100_000).expectation(shape).limit_ns is None
    known = [shape for shape in standard_shapes() if (shape.op, shape.type) != ("FLASH_ATTN_EXT", "q8_0")]
    fewer = OperatorTimes(points_of(known), n_threads=N_THREADS)
    forecasts = ShapeForecasts(times=fewer, tolerance_ratio=2.5, least_ns=0)
    widths = []
    for type in ("f16", "q8_0"):
        found = forecasts.expectation(OperationShape.from_id(f"attention/heads8-kvheads8-head64-context900/{type}"))
        assert found.upper_ns is not None
        assert found.expected_ns is not None
        widths.append(found.upper_ns / found.expected_ns)
    assert widths[1] > 1.5 * widths[0]


@pytest.mark.parametrize(
    ("shape_id", "steps"),
    [
        ("gemm/m3-n5-k7/f32", {"m": 16, "n": 16, "k": INNER_STEP}),
        ("bmm/b2-m3-n5-k7/f32", {"n": 16, "k": INNER_STEP}),
        ("gemv/n5-k7/f32", {"n": 16, "k": INNER_STEP}),
        ("attention/heads4-kvheads2-head7-context5/f32", {"context": 16, "head": INNER_STEP}),
    ],
)
def test_the_tiled_dimensions_grow_by_the_tile_and_the_inner_one_by_its_step(
    shape_id: str, steps: dict[str, int]
) -> None:
    """Batches, heads and a BMM's tokens are work-groups of their own, and have no step."""
    assert dimension_steps(tiled(shape_id, tile=16)) == steps


@pytest.mark.parametrize("operation", list(Operation))
def test_ggml_is_held_against_round_shapes(operation: Operation) -> None:
    sizes = "-".join(f"{name}2" for name in operation.dimensions)
    assert set(dimension_steps(ggml(f"{operation.value}/{sizes}/f32")).values()) == {ROUND_SIZE}


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 500), st.sampled_from(TILES))
def test_padding_a_padded_shape_changes_nothing(m: int, n: int, k: int, tile: int) -> None:
    case = tiled(f"gemm/m{m}-n{n}-k{k}/f32", tile=tile, vector=1)
    padded = replace(case, shape=padded_shape(case))
    assert padded_shape(padded) == padded.shape


@pytest.mark.parametrize("type", STORED_TYPES)
def test_padding_keeps_rows_in_whole_blocks(type: str) -> None:
    k = 3 * block_values(type)
    assert padded_shape(ggml(f"gemv/n1-k{k}/{type}")).of("k") % block_values(type) == 0


LEVELS = ((1 << 16, 100e9), (1 << 24, 10e9))
CEILINGS = ceilings(50e9, levels=LEVELS, f16_flops_per_s=80e9, int8_flops_per_s=200e9)


@pytest.mark.parametrize(("type", "flops_per_s"), [("f32", 50e9), ("f16", 80e9), ("q8_0", 200e9), ("q4_k", 200e9)])
def test_the_arithmetic_is_the_fastest_that_the_type_can_use(type: str, flops_per_s: float) -> None:
    """F32 weights are multiplied as F32, F16 as either, quantised ones as integers too."""
    shape = OperationShape.from_id(f"gemm/m256-n256-k256/{type}")
    assert floor_ns(shape, CEILINGS) == pytest.approx(2 * 256**3 / flops_per_s * 1e9)


def test_a_product_with_one_row_is_bound_by_its_bytes() -> None:
    """Weights of F32 take four bytes for two FLOPs; the working set is what moves."""
    shape = OperationShape.from_id("gemv/n4096-k4096/f32")
    assert shape.moved_bytes > 1 << 24
    assert floor_ns(shape, CEILINGS) == pytest.approx(shape.moved_bytes / 10e9 * 1e9)
