"""Between which sizes shapes are drawn."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.bounds import (
    DEFAULT_BOUNDS,
    TIMED_BOUNDS,
    Bounds,
    SizeRange,
    bounds_of,
    parse_bounds,
    types_within,
)
from perfsuite.workload.shapes.operation_shape import STORED_TYPES, Operation


@pytest.mark.parametrize("bounds", [DEFAULT_BOUNDS, TIMED_BOUNDS])
def test_every_operation_has_bounds_for_each_dimension(bounds: Mapping[Operation, Bounds]) -> None:
    for operation in Operation:
        assert tuple(bounds[operation]) == operation.dimensions
        assert types_within(operation, bounds[operation]) == STORED_TYPES


def test_a_range_is_cut_to_whole_blocks() -> None:
    assert SizeRange(least=2, most=100).in_blocks(32) == SizeRange(least=32, most=96)
    assert SizeRange(least=33, most=63).in_blocks(32) is None


@pytest.mark.parametrize(("least", "most"), [(0, 4), (5, 4), (1, 2**30 + 1)])
def test_a_range_holds_a_size(least: int, most: int) -> None:
    with pytest.raises(ShapeError, match=f"sizes {least}:{most}"):
        SizeRange(least=least, most=most)


def test_what_is_given_goes_before_the_default() -> None:
    found = bounds_of(Operation.GEMV, {"k": SizeRange(least=2, most=9), "m": SizeRange(least=1, most=2)})
    assert found == {"n": DEFAULT_BOUNDS[Operation.GEMV]["n"], "k": SizeRange(least=2, most=9)}
    bounds = bounds_of(Operation.GEMM, {"k": SizeRange(least=1, most=40)})
    assert types_within(Operation.GEMM, bounds) == ("f32", "f16", "q8_0", "q4_0")


def test_bounds_are_read() -> None:
    found = parse_bounds("k=2:512, n=1:64", [Operation.GEMM])
    assert found == {"k": SizeRange(least=2, most=512), "n": SizeRange(least=1, most=64)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("k=2", "'k=2' is not a range; expected <dimension>=<least>:<most>"),
        ("k=2:4,k=1:2", "'k=1:2' is there twice"),
        ("heads=1:2", "no dimension 'heads'; there are m, n, k"),
        ("k=9:2", "sizes 9:2"),
        ("", "'' is not a range"),
    ],
)
def test_wrong_bounds_are_told(text: str, told: str) -> None:
    with pytest.raises(ShapeError, match=told):
        parse_bounds(text, [Operation.GEMM])
