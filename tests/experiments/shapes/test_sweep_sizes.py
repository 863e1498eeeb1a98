"""Sizes as the command line gives them."""

from __future__ import annotations

import pytest

from perfsuite.experiments.shapes.sweep_sizes import (
    all_sizes,
    grid_sizes,
    size_option,
    size_range,
    sizes_of,
    swept_dimension,
)
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape


@pytest.mark.parametrize(
    ("text", "step", "expected"),
    [
        ("7", 1, (7,)),
        ("64,1,8,8", 1, (1, 8, 64)),
        ("1:12:4", 1, (1, 5, 9)),
        ("1:20", 1, (1, 2, 3, 5, 8, 13, 20)),
        ("4:9", 1, (4, 5, 8, 9)),
        ("8:8", 1, (8,)),
        ("1:300", 32, (32, 64, 96, 160, 256, 320)),
    ],
)
def test_sizes_are_lists_steps_or_ranges(text: str, step: int, expected: tuple[int, ...]) -> None:
    assert sizes_of("n", text, step) == expected


def test_one_dimension_decides_and_the_others_are_fixed() -> None:
    """The growing one where nothing is said, else the one of several sizes; defaults are whole blocks of the type."""
    dimension, sizes, fixed = grid_sizes(Operation.GEMV, "f16", {})
    assert (dimension, sizes[0], sizes[-1], fixed) == ("n", 1, 512, {"k": 2048})
    dimension, sizes, fixed = grid_sizes(Operation.GEMM, "f16", {"m": "1,8,64", "k": "256"})
    assert (dimension, sizes, fixed) == ("m", (1, 8, 64), {"n": 512, "k": 256})
    _, _, fixed = grid_sizes(Operation.BMM, "q4_k", {})
    assert fixed == {"b": 8, "m": 1, "k": 256}


@pytest.mark.parametrize("operation", Operation)
def test_what_is_not_given_is_as_in_a_sweep(operation: Operation) -> None:
    """Both commands mean the same operation where nobody said more, on a device of one compute unit."""
    swept = all_sizes(operation, {}, operation.growing_dimension, type="f16", tile=64, n_compute_units=1)
    dimension, sizes, fixed = grid_sizes(operation, "f16", {})
    assert {name: each[0] for name, each in swept.items() if name != dimension} == fixed
    assert (sizes[0], sizes[-1]) == (swept[dimension][0], swept[dimension][-1])


def fixed(operation: Operation, n_compute_units: int, type: str = "f32", **texts: str) -> dict[str, int]:
    """The sizes that are not swept, at tile 64."""
    asked = {name: size_range(size_option(name), text) for name, text in texts.items()}
    swept = swept_dimension(operation, texts)
    found = all_sizes(operation, asked, swept, type=type, tile=64, n_compute_units=n_compute_units)
    assert tuple(found) == operation.dimensions
    return {name: each[0] for name, each in found.items() if name != swept}


def test_the_range_is_what_is_swept() -> None:
    """Without one it is the growing dimension, from 1 to 512, unless that has a size."""
    assert swept_dimension(Operation.BMM, {"k": "32:64", "n": "5"}) == "k"
    assert swept_dimension(Operation.GEMV, {}) == "n"
    assert swept_dimension(Operation.ATTENTION, {"heads": "4"}) == "context"
    grown = all_sizes(Operation.BMM, {}, "n", type="f32", tile=64, n_compute_units=2)
    assert grown["n"] == range(1, 513)
    assert fixed(Operation.BMM, 2, k="1:64")["n"] == 512


def test_products_and_rows_fill_the_compute_units() -> None:
    """Of a BMM the least multiple from 8 on, of a GEMM a tile for each: a step of n gives each one tile more."""
    for n_compute_units, b in ((1, 8), (2, 8), (3, 9), (12, 12), (100, 100)):
        assert fixed(Operation.BMM, n_compute_units) == {"b": b, "m": 1, "k": 128}
    assert fixed(Operation.GEMM, 6) == {"m": 384, "k": 128}
    assert fixed(Operation.GEMV, 6) == {"k": 2048}


@pytest.mark.parametrize(
    ("n_compute_units", "texts", "heads"),
    [(2, {}, (32, 8)), (6, {}, (48, 8)), (2, {"kvheads": "5"}, (40, 5)), (2, {"heads": "12"}, (12, 4))],
)
def test_heads_are_a_multiple_of_all(n_compute_units: int, texts: dict[str, str], heads: tuple[int, int]) -> None:
    found = fixed(Operation.ATTENTION, n_compute_units, **texts)
    assert (found["heads"], found["kvheads"], found["head"]) == (*heads, 64)


@pytest.mark.parametrize("type", ["f32", "q8_0", "q4_k"])
@pytest.mark.parametrize("operation", Operation)
def test_default_sizes_are_whole_blocks(operation: Operation, type: str) -> None:
    """So that every type has every operation."""
    found = all_sizes(operation, {}, operation.growing_dimension, type=type, tile=64, n_compute_units=4)
    OperationShape.of_sizes(operation, type, {name: each[0] for name, each in found.items()})
