"""Sizes of policies, from options."""

from __future__ import annotations

import pytest

from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.policy_sizes import grid_sizes, sizes_of
from perfsuite.experiments.shapes.sweep_sizes import all_sizes
from perfsuite.workload.shapes.operation import Operation


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
    """A list is sorted, a range with a step is even, and one without grows by Fibonacci, in whole blocks."""
    assert sizes_of("n", text, step) == expected


@pytest.mark.parametrize("text", ["", "x", "1:", "0", "0:4", "5:4", "1:5:0", "1,,2", "-1", "1:99999999", "1:500:2"])
def test_what_names_no_sizes_is_refused(text: str) -> None:
    """The dimension and the text are named, and what is accepted."""
    with pytest.raises(ShapeError, match=rf"^n: '{text}'.*expected"):
        sizes_of("n", text)


def test_the_growing_dimension_decides_where_nothing_is_said() -> None:
    """All other sizes have defaults."""
    dimension, sizes, fixed = grid_sizes(Operation.GEMV, "f16", {})
    assert (dimension, sizes[0], sizes[-1], fixed) == ("n", 1, 512, {"k": 2048})


def test_another_dimension_decides_where_it_has_several_sizes() -> None:
    """The growing one is fixed then."""
    dimension, sizes, fixed = grid_sizes(Operation.GEMM, "f16", {"m": "1,8,64", "k": "256"})
    assert (dimension, sizes, fixed) == ("m", (1, 8, 64), {"n": 512, "k": 256})


def test_defaults_are_whole_blocks_of_the_type() -> None:
    """Rows of Q4_K have blocks of 256."""
    _, _, fixed = grid_sizes(Operation.BMM, "q4_k", {})
    assert fixed == {"b": 8, "m": 1, "k": 256}


@pytest.mark.parametrize("operation", list(Operation))
def test_what_is_not_given_is_as_in_a_sweep(operation: Operation) -> None:
    """Both commands mean the same operation where nobody said more, on a device of one compute unit."""
    swept = all_sizes(operation, {}, type="f16", tile=64, n_compute_units=1)
    dimension, sizes, fixed = grid_sizes(operation, "f16", {})
    assert {name: each.sizes[0] for name, each in swept.items() if name != dimension} == fixed
    assert (sizes[0], sizes[-1]) == (swept[dimension].sizes[0], swept[dimension].sizes[-1])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"n": "8"}, "gemv: none of several sizes; expected exactly one dimension"),
        ({"n": "1:8", "k": "32,64"}, "gemv: n and k of several sizes"),
    ],
)
def test_exactly_one_dimension_decides(texts: dict[str, str], message: str) -> None:
    """A table has one dimension."""
    with pytest.raises(ShapeError, match=message):
        grid_sizes(Operation.GEMV, "f16", texts)
