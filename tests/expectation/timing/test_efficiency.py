"""How much of a device's peaks an operator reaches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.expectation.ceilings import Bandwidth, Ceilings
from perfsuite.expectation.graph import Batch, Settings, engine_graph
from perfsuite.expectation.timing.efficiency import efficiency
from perfsuite.expectation.timing.features import shape_cost, shape_of
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes

from ...catalogue_workloads import catalogue_weights
from ...synthetic_calibration import N_THREADS, points_of

#: A cache of 400 GB/s and memory of 50 GB/s; 0.4 TFLOP/s.
CEILINGS = Ceilings(
    n_threads=2,
    bandwidths=tuple(
        Bandwidth(working_set_bytes=size, read_bytes_per_s=rate, copy_bytes_per_s=rate * 2, triad_bytes_per_s=rate)
        for size, rate in ((10**6, 4e11), (10**8, 5e10))
    ),
    fp32_flops_per_s=4e11,
    int8_flops_per_s=1.6e12,
    f16_flops_per_s=None,
    dispatch_ns=300,
)
PRODUCT = OperatorShape(op="MUL_MAT", type="q8_0", n_inner=1024, n_outer=512, n_tokens=8)


def taking(time_ns: float, *shapes: OperatorShape) -> OperatorTimes:
    """Return fits in which each of the shapes takes this long."""
    return OperatorTimes(points_of(shapes, lambda _: time_ns), n_threads=N_THREADS)


def test_efficiency_is_work_over_time_over_the_peaks() -> None:
    """A product of 2 x 1024 x 512 x 8 FLOPs in 100 us reaches so much of 0.4 TFLOP/s and of memory's 50 GB/s."""
    found = efficiency(PRODUCT, taking(1e5, PRODUCT), CEILINGS)
    flops = 2 * 1024 * 512 * 8
    n_bytes = 1024 // 32 * 34 * 512 + 4 * 8 * (1024 + 512)
    assert found.time_ns == pytest.approx(1e5)
    assert found.flops_per_s == pytest.approx(flops / 1e-4)
    assert found.compute_ratio == pytest.approx(flops / 1e-4 / 4e11)
    assert found.bytes_per_s == pytest.approx(n_bytes / 1e-4)
    assert found.memory_ratio == pytest.approx(n_bytes / 1e-4 / 5e10)


def test_efficiency_has_the_uncertainty_of_its_time() -> None:
    """The spread is that of the fit, and a stand-in's where the type was not measured."""
    times = taking(1e5, *(replace(PRODUCT, n_inner=k) for k in (256, 512, 1024, 2048)))
    assert efficiency(PRODUCT, times, CEILINGS).spread_ratio == times.time(PRODUCT).spread_ratio
    other = replace(PRODUCT, type="q4_0")
    assert efficiency(other, times, CEILINGS).spread_ratio > efficiency(PRODUCT, times, CEILINGS).spread_ratio


def test_every_operator_of_the_grid_moves_something() -> None:
    """What a calibration measures has bytes, and products and attention have arithmetic."""
    for shape in standard_shapes():
        cost = shape_cost(shape)
        assert cost.moved_bytes > 0, shape
        if shape.op in ("MUL_MAT", "MUL_MAT_ID", "FLASH_ATTN_EXT"):
            assert cost.flops >= 2 * shape.n_inner * shape.n_tokens * max(1, shape.n_heads, shape.n_used), shape


@pytest.mark.parametrize(
    ("op", "n_inner", "flops", "read_bytes"),
    [
        ("MUL/scalar", 256, 9 * 256, 9 * 4 * (256 + 1)),
        ("CONCAT", 256, 0, 9 * 4 * 256),
        ("CONCAT", 255, 0, 9 * 4 * 255),
    ],
)
def test_rows_are_read_and_written_once(op: str, n_inner: int, flops: int, read_bytes: int) -> None:
    """Rows are scaled by one number each, which is read too; of a concatenation both halves are read."""
    cost = shape_cost(OperatorShape(op=op, type="f32", n_inner=n_inner, n_tokens=9))
    assert (cost.flops, cost.read_bytes, cost.written_bytes) == (flops, read_bytes, 9 * 4 * n_inner)


@pytest.mark.parametrize("model", ["smollm2-135m-l2-q8_0", "qwen3-0.6b-l2-q4_0", "deepseek-v2-lite-l3-q4_0"])
def test_an_operator_alone_costs_what_it_costs_in_the_graph(model: str) -> None:
    """The arithmetic of products, norms, RoPE and activations is that of the operator whose shape it is."""
    weights = catalogue_weights(model)
    batch = Batch(n_tokens=32, n_outputs=32, n_used=32, n_ctx=256)
    kinds = ("MUL_MAT", "MUL_MAT_ID", "RMS_NORM+MUL", "ROPE", "SWIGLU", "ADD", "MUL", "CONCAT")
    graph = engine_graph(weights.architecture, weights.tensor_types, batch, Settings())
    for operator in (each for each in graph if each.op in kinds):
        assert shape_cost(shape_of(operator, batch)).flops == operator.cost.flops, operator
