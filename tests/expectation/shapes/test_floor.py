"""The least time that ceilings allow an operation at a shape."""

from __future__ import annotations

from typing import Any

import pytest

from perfsuite.errors import ShapeError
from perfsuite.expectation.ceilings import Bandwidth, Ceilings
from perfsuite.expectation.shapes.floor import ShapeCeilings, efficiency_ratio, floor_ns
from perfsuite.workload.shapes.operation_shape import OperationShape

CEILINGS = ShapeCeilings(
    bandwidths=((1 << 16, 100e9), (1 << 24, 10e9)),
    flops_per_s={"fp32": 50e9, "f16": 80e9, "int8": 200e9},
    spread_ratio=0.1,
)


@pytest.mark.parametrize(("type", "flops_per_s"), [("f32", 50e9), ("f16", 80e9), ("q8_0", 200e9), ("q4_k", 200e9)])
def test_the_arithmetic_is_the_fastest_that_the_type_can_use(type: str, flops_per_s: float) -> None:
    """F32 weights are multiplied as F32, F16 as either, quantised ones as integers too."""
    shape = OperationShape.from_id(f"gemm/m256-n256-k256/{type}")
    assert CEILINGS.fastest_flops_per_s(type) == flops_per_s
    assert floor_ns(shape, CEILINGS) == pytest.approx(2 * 256**3 / flops_per_s * 1e9)


@pytest.mark.parametrize(("n_bytes", "bytes_per_s"), [(1, 100e9), (1 << 20, 100e9), (1 << 24, 10e9), (1 << 30, 10e9)])
def test_a_set_between_two_levels_may_have_the_faster_one(n_bytes: int, bytes_per_s: float) -> None:
    """Only from a level's own size on is that level's bandwidth the most."""
    assert CEILINGS.fastest_bandwidth_bytes_per_s(n_bytes) == bytes_per_s


def test_a_faster_larger_level_bounds_smaller_sets() -> None:
    """Nothing is bound by a small set that was measured slower than a large one."""
    ceilings = ShapeCeilings(bandwidths=((100, 1.0), (200, 9.0)), flops_per_s={"fp32": 1.0}, spread_ratio=0.0)
    assert ceilings.fastest_bandwidth_bytes_per_s(150) == 9.0


def test_a_product_with_one_row_is_bound_by_its_bytes() -> None:
    """Weights of F32 take four bytes for two FLOPs; the working set is what moves."""
    shape = OperationShape.from_id("gemv/n4096-k4096/f32")
    assert shape.moved_bytes > 1 << 24
    assert floor_ns(shape, CEILINGS) == pytest.approx(shape.moved_bytes / 10e9 * 1e9)


def test_efficiency_is_the_floor_over_what_was_measured() -> None:
    """A measurement of four times the floor reaches a quarter."""
    shape = OperationShape.from_id("gemm/m64-n64-k64/f32")
    assert efficiency_ratio(shape, CEILINGS, 4 * floor_ns(shape, CEILINGS)) == pytest.approx(0.25)


def test_the_processors_probes_give_the_fastest_use_of_each_level() -> None:
    """Read, copy and triad count, and arithmetic that the processor has not is left out."""
    level = Bandwidth(working_set_bytes=64, read_bytes_per_s=3.0, copy_bytes_per_s=5.0, triad_bytes_per_s=4.0)
    probed = Ceilings(
        n_threads=2,
        bandwidths=(level,),
        fp32_flops_per_s=1.0,
        int8_flops_per_s=2.0,
        f16_flops_per_s=None,
        dispatch_ns=1,
    )
    ceilings = ShapeCeilings.of_processor(probed, spread_ratio=0.2)
    assert ceilings.bandwidths == ((64, 5.0),)
    assert ceilings.flops_per_s == {"fp32": 1.0, "int8": 2.0}
    assert ceilings.spread_ratio == 0.2


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"bandwidths": ()}, "expected a bandwidth"),
        ({"flops_per_s": {"int8": 1.0}}, "the rate of fp32"),
        ({"spread_ratio": 1.0}, "spread_ratio is 1.0, expected 0 or more and less than 1"),
        ({"spread_ratio": -0.1}, "spread_ratio is -0.1"),
    ],
)
def test_ceilings_that_bound_nothing_are_refused(changes: dict[str, Any], complaint: str) -> None:
    """The error says what is missing."""
    usual = {"bandwidths": ((1, 1.0),), "flops_per_s": {"fp32": 1.0}, "spread_ratio": 0.0}
    with pytest.raises(ShapeError, match=complaint):
        ShapeCeilings(**{**usual, **changes})
