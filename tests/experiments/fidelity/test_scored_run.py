"""How accurate a row is, and what is accurate enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.experiments.fidelity.scored_run import (
    FidelityKind,
    FidelityRun,
    accuracy_percent,
    engine_statement,
    judge_fidelity,
    kernel_row,
    mean_statement,
    row_statement,
    scaled_error_us_per_ms,
)
from perfsuite.records.outcome import Outcome
from tests.synthetic_fidelity import duplication, row

RUN = FidelityRun(
    device="host",
    platform=None,
    conditions={},
    rows=(
        row("decode", 10**6, 10**6),
        row("prefill", 1_100_000, 10**6),
        row("decode/uprobes", 2 * 10**6, 10**6),
        row("kernel/add/count8/f32", 95_000, 100_000),
        row("kernel/add/count9/f32", None, None, problem="no memory"),
        row("kernel/add/count2/f32", 9_000, 10_000),
        row("kernel/engine/decode/k/8x1", 50_000, 100_000),
    ),
    problems=("the engine's kernels: the layer does not build",),
)


@pytest.mark.parametrize(
    ("case_id", "outcome", "reason"),
    [
        ("fidelity/phase/decode", Outcome.PASS, "accurate to 99.9 %: 1.00 ms against 1.00 ms by interposed"),
        ("fidelity/phase/prefill", Outcome.IMPOSSIBLE, "measured wrongly, expected accurate to 99.9 %: 1.10 ms"),
        ("fidelity/phase/copy", Outcome.INVALID, "the engine's kernels: the layer does not build"),
        ("fidelity/kernel/add/count8/f32", Outcome.PASS, "accurate to 91 %: 95.0 µs against 100 µs by duplication"),
        ("fidelity/kernel/add/count9/f32", Outcome.INVALID, "no memory"),
        ("fidelity/kernel/add/count2/f32", Outcome.INVALID, "9.00 µs against 10.0 µs"),
        ("fidelity/kernel/mean", Outcome.IMPOSSIBLE, "measured wrongly, expected kernels of 100 µs and more"),
        ("fidelity/kernel/engine", Outcome.IMPOSSIBLE, "measured wrongly, expected each of the engine's kernels"),
    ],
)
def test_a_case_is_judged_by_its_limit(case_id: str, outcome: Outcome, reason: str) -> None:
    """A ground truth that contradicts is IMPOSSIBLE, what is missing or too short INVALID, with the reason."""
    judgement = judge_fidelity(RUN, case_id)
    assert judgement.outcome is outcome
    assert judgement.reason.startswith(reason)
    assert (judgement.case_id, judgement.kind, judgement.samples_ns) == (case_id, "fidelity", ())


@pytest.mark.parametrize("case_id", ["fidelity/phase/decode", "fidelity/kernel/mean", "fidelity/kernel/engine"])
def test_what_was_not_run_has_a_reason(case_id: str) -> None:
    judgement = judge_fidelity(None, case_id, reason="the tracer does not build")
    assert (judgement.outcome, judgement.reason) == (Outcome.INVALID, "the tracer does not build")
    other = judge_fidelity(replace(RUN, rows=RUN.rows[1:2], problems=()), case_id)
    assert (other.outcome, other.reason) == (Outcome.INVALID, "it was not measured")


ADD, ENGINE = "kernel/add/count8/f32", "kernel/engine/decode/kernel_mul/8x1"


@pytest.mark.parametrize(
    ("name", "measured_ns", "truth_ns", "holds"),
    [
        ("decode", 1_001_000, 1_000_000, True),
        ("decode", 1_001_100, 1_000_000, False),
        ("prefill", 998_900, 1_000_000, False),
        ("decode", 50_060, 50_000, False),
        ("decode/uprobes", 1_001_100, 1_000_000, False),
        ("sampling", 103_000, 100_000, True),
        ("sampling", 103_100, 100_000, False),
        ("copy", 12_000, 10_000, True),
        ("copy", 12_001, 10_000, False),
        ("embedding", 7_999, 10_000, False),
    ],
)
def test_a_phase_is_judged_by_what_it_is_and_how_long(name: str, measured_ns: int, truth_ns: int, holds: bool) -> None:
    """Evaluations by 99.9 %, other phases from 100 µs on by 97 %, shorter ones by 2 µs."""
    statement = row_statement(row(name, measured_ns, truth_ns))
    assert (statement.name, statement.holds) == (f"fidelity/phase/{name}", holds)


def test_the_error_of_a_short_phase_is_that_of_its_occurrences() -> None:
    """Medians that agree do not hide occurrences that do not."""
    assert row_statement(row("copy", 10_000, 10_000, error_ns=-2_500)).holds is False


@pytest.mark.parametrize(
    ("measured_ns", "truth_ns", "holds"),
    [(91_000, 100_000, True), (90_900, 100_000, False), (109_100, 100_000, False), (99_000, 99_900, None)],
)
def test_a_kernel_is_judged_from_a_tenth_of_a_millisecond_on(
    measured_ns: int, truth_ns: int, holds: bool | None
) -> None:
    """Each by 91 %, the engine's by the worst; a shorter one is not judged, and says so."""
    statement = row_statement(row(ADD, measured_ns, truth_ns))
    assert statement.holds is holds
    assert ("reported and not judged" in statement.evidence) == (holds is None)
    rows = [row(ENGINE, measured_ns, 100_000), row(f"{ENGINE}-b", 100_000, 100_000), row(ADD, 1, 100_000)]
    of_engine = engine_statement(rows)
    assert of_engine.holds is (holds is not False)
    assert ENGINE in of_engine.evidence


def test_the_mean_is_over_long_kernels() -> None:
    rows = [row(f"{ADD}-a", 96_000, 100_000), row(f"{ADD}-b", 99_000, 100_000), row(f"{ADD}-c", 50_000, 90_000)]
    statement = mean_statement(rows)
    assert statement.holds is True
    assert statement.evidence == f"mean 97.50 % of 2 kernels, worst 96.00 % ({ADD}-a)"
    assert mean_statement([*rows, row(f"{ADD}-d", 97_000, 100_000)]).holds is False


def test_execution_is_held_against_the_ground_truth() -> None:
    row = kernel_row(duplication(n_wanted=1500))
    assert (row.kind, row.name, row.n) == (FidelityKind.KERNELS, "kernel/add/count1048576/f32", 1000)
    assert (row.measured_ns, row.ground_truth_ns, row.error_ns) == (200_000, 202_000, -2000)
    assert row.interval_ns == (201_000, 204_000)
    assert row.beside_ns == {"occupied_ns": 201_000, "base_execution_ns": 203_000}
    assert row.accuracy_percent == pytest.approx(100 * 200 / 202)
    assert (row.is_measured, row.problem) == (True, None)
    assert row.note == "1000 duplicates of 1500: the time budget allows no more"
    assert kernel_row(duplication()).note == ""


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"rounds": (), "n_duplicates": 0, "n_wanted": 0, "problem": "no copy of an image"}, "no copy of an image"),
        ({"rounds": ()}, "no round was measured"),
        (
            {"rounds": tuple(replace(each, base_ns=each.duplicated_ns + 5000) for each in duplication().rounds)},
            "the ground truth is -5 ns: the base run took as long as the duplicated one",
        ),
    ],
    ids=["failed", "no rounds", "below zero"],
)
def test_what_cannot_be_scored_is_a_row_with_its_reason(changed: dict[str, Any], problem: str) -> None:
    row = kernel_row(duplication(**changed))
    assert (row.problem, row.is_measured, row.accuracy_percent, row.note) == (problem, False, None, "")


LATENCIES_NS = st.integers(min_value=1, max_value=10**12)


@pytest.mark.parametrize(
    ("measured_ns", "truth_ns", "expected_percent"),
    [(150, 100, 50), (100, 150, 200 / 3), (7, 7, 100), (300, 100, -100), (10**12 - 1, 10**12, 100 - 1e-10)],
)
def test_the_ground_truth_is_what_an_error_is_relative_to(
    measured_ns: int, truth_ns: int, expected_percent: float
) -> None:
    """150 against 100 is half of the ground truth away, 100 against 150 a third; nothing is cut off below 0."""
    assert accuracy_percent(measured_ns, truth_ns) == pytest.approx(expected_percent, rel=1e-12)


@given(measured_ns=LATENCIES_NS, ground_truth_ns=LATENCIES_NS)
def test_both_scores_tell_the_same(measured_ns: int, ground_truth_ns: int) -> None:
    """Accuracy is 100 less a tenth of the scaled error, whatever the latencies."""
    expected = 100.0 - scaled_error_us_per_ms(measured_ns, ground_truth_ns) / 10.0
    assert accuracy_percent(measured_ns, ground_truth_ns) == pytest.approx(expected, rel=1e-12, abs=1e-9)
