"""From rounds of duplication to a row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.experiments.fidelity.kernels import kernel_row
from perfsuite.experiments.fidelity.scored_run import FidelityKind
from tests.synthetic_fidelity import duplication


def test_execution_is_held_against_the_ground_truth() -> None:
    """END - START is what is judged, and the time line and the base run stand beside it."""
    row = kernel_row(duplication())
    assert (row.kind, row.name, row.n) == (FidelityKind.KERNELS, "kernel/add/count1048576/f32", 1000)
    assert (row.measured_ns, row.ground_truth_ns, row.error_ns) == (200_000, 202_000, -2000)
    assert row.interval_ns == (201_000, 204_000)
    assert row.beside_ns == {"occupied_ns": 201_000, "base_execution_ns": 203_000}
    assert row.accuracy_percent == pytest.approx(100 * 200 / 202)
    assert (row.note, row.problem) == ("", None)


def test_fewer_duplicates_than_wanted_are_noted() -> None:
    """The row is measured, and says that there were fewer."""
    row = kernel_row(duplication(n_wanted=1500))
    assert row.note == "1000 duplicates of 1500: the time budget allows no more"
    assert row.is_measured


def test_a_duplication_that_failed_is_a_row_with_its_reason() -> None:
    """Nothing is measured, and nothing is left out."""
    row = kernel_row(duplication(rounds=(), n_duplicates=0, n_wanted=0, problem="an image cannot be copied"))
    assert (row.measured_ns, row.ground_truth_ns, row.interval_ns) == (None, None, None)
    assert (row.problem, row.is_measured, row.note) == ("an image cannot be copied", False, "")


def test_no_rounds_are_a_problem_of_their_own() -> None:
    """Without a reason from elsewhere the row still has one."""
    assert kernel_row(duplication(rounds=())).problem == "no round was measured"


def test_a_ground_truth_below_zero_is_none() -> None:
    """A base run that took as long as the duplicated one says nothing."""
    rounds = tuple(replace(each, base_ns=each.duplicated_ns + 5000) for each in duplication().rounds)
    row = kernel_row(duplication(rounds=rounds))
    assert row.problem == "the ground truth is -5 ns: the base run took as long as the duplicated one"
    assert row.accuracy_percent is None
