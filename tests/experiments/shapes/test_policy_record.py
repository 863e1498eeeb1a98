"""Policies by shape: what a table may be, and what it answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.errors import PolicyError
from perfsuite.experiments.shapes.policy_record import Choice, Gain, MeasuredSubject, PolicyRow
from tests.synthetic_shape_policy import CPU, OPENCL, policy_row, policy_table, shape_policy


@pytest.mark.parametrize(
    ("n", "choice", "place"),
    [(1, CPU, 0), (8, CPU, 0), (20, CPU, 0), (21, OPENCL, 1), (512, OPENCL, 1), (513, CPU, None)],
)
def test_a_size_is_answered_by_the_row_that_it_lies_in(n: int, choice: Choice, place: int | None) -> None:
    """Both ends belong to a row; beyond the measured sizes the default is told without a row."""
    table = policy_table()
    found = table.choose({"n": n, "k": 512})
    assert found.choice == choice
    assert found.row == (None if place is None else table.rows[place])


def test_a_size_below_the_first_measured_one_is_not_known() -> None:
    """What lies below the grid is as little known as what lies above it."""
    table = policy_table(measured_sizes=(4, 512), rows=(policy_row(4, 512, OPENCL),))
    assert table.choose({"n": 3, "k": 512}).row is None
    assert table.choose({"n": 3, "k": 512}).choice == CPU


def test_another_fixed_size_is_not_known() -> None:
    """A table says nothing of shapes that differ in a size that it keeps fixed."""
    found = policy_table().choose({"n": 100, "k": 1024})
    assert (found.choice, found.row) == (CPU, None)


def test_a_shape_without_a_dimension_is_refused() -> None:
    """The missing dimension is named."""
    with pytest.raises(PolicyError, match="a shape without k; expected its size"):
        policy_table().choose({"n": 100})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((), "expected the first to begin at 1 and the last to end at 512"),
        ((policy_row(1, 64, CPU),), "the last to end at 512"),
        ((policy_row(1, 8, CPU), policy_row(64, 512, OPENCL)), r"rows\[1\].least: is 64, expected 9"),
        ((policy_row(1, 64, CPU), policy_row(64, 512, OPENCL)), r"rows\[1\].least: is 64, expected 65"),
        ((policy_row(1, 512, CPU, measured_most=500),), r"rows\[0\]: measured_least and measured_most are none"),
    ],
)
def test_rows_have_neither_gaps_nor_overlaps(rows: tuple[PolicyRow, ...], message: str) -> None:
    """Every size between the first and the last measured one lies in exactly one row."""
    with pytest.raises(PolicyError, match=message):
        policy_table(rows=rows)


@pytest.mark.parametrize("sizes", [(), (0, 512), (1, 1, 512), (512, 1)])
def test_measured_sizes_ascend(sizes: tuple[int, ...]) -> None:
    """Sizes are 1 or more and stand once each, in order."""
    with pytest.raises(PolicyError, match="measured_sizes: expected"):
        policy_table(measured_sizes=sizes)


def test_a_row_that_ends_before_it_begins_is_refused() -> None:
    """The measured part lies within the range."""
    with pytest.raises(PolicyError, match="a row from 8 to 1"):
        policy_row(8, 1, CPU)


@pytest.mark.parametrize("bounds", [(1.1, 1.2), (0.5, 0.9), (0.0, 2.0), (0.5, float("inf")), (float("nan"), 2.0)])
def test_a_gain_lies_within_its_interval(bounds: tuple[float, float]) -> None:
    """Bounds are finite, above 0, and on both sides of the ratio."""
    with pytest.raises(PolicyError, match="a gain of 1 between"):
        Gain(ratio=1.0, lower_ratio=bounds[0], upper_ratio=bounds[1])


@pytest.mark.parametrize(
    ("subject", "tile", "vector", "message"),
    [
        ("gpu", None, None, "subject is 'gpu', expected tiled, ggml-cpu, ggml-opencl"),
        ("tiled", 8, None, "tiled: expected a tile and a vector"),
        ("ggml-cpu", 8, 8, "ggml-cpu: expected no tile and no vector"),
    ],
)
def test_a_choice_is_someone_who_computes(subject: str, tile: int | None, vector: int | None, message: str) -> None:
    """Only the suite's own kernels have a tile and a vector width, and they have both."""
    with pytest.raises(PolicyError, match=message):
        Choice(subject=subject, tile=tile, vector=vector)


def test_choices_have_short_names() -> None:
    """Backends are called as the traces' crossover calls them, tilings as in case ids."""
    assert [str(each) for each in (CPU, OPENCL)] == ["cpu", "opencl"]
    assert str(Choice(subject="tiled", tile=64, vector=8)) == "tile64-vector8"


def test_a_table_of_what_was_not_measured_is_refused() -> None:
    """Each subject that a table chooses has its device told."""
    with pytest.raises(PolicyError, match=r"tables\[1\]: chooses ggml-cpu, which is none of the subjects"):
        replace(shape_policy(), subjects=shape_policy().subjects[:1])


def test_a_subject_that_there_is_not_is_refused() -> None:
    """Devices are told of known subjects only."""
    with pytest.raises(PolicyError, match="subject is 'npu'"):
        MeasuredSubject(subject="npu", device="x", fingerprint=())
