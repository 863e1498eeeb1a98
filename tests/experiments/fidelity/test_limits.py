"""What is accurate enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.experiments.fidelity.limits import (
    engine_statement,
    judge_fidelity,
    kernel_statement,
    long_kernels,
    mean_accuracy_percent,
    mean_statement,
    phase_statement,
    short_kernels,
    statements,
    worst_row,
)
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun
from perfsuite.records.outcome import Outcome
from tests.synthetic_fidelity import row

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


def test_both_latencies_are_told() -> None:
    told, unknown = (judge_fidelity(RUN, f"fidelity/phase/{phase}") for phase in ("prefill", "copy"))
    assert (told.measured_ns, told.expected_ns, told.change_ratio) == (1_100_000, 10**6, None)
    assert unknown.measured_ns is unknown.expected_ns is None


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
        ("end_to_end", 999_100, 1_000_000, True),
        ("decode", 50_060, 50_000, False),
        ("decode/uprobes", 1_001_100, 1_000_000, False),
        ("sampling", 103_000, 100_000, True),
        ("sampling", 103_100, 100_000, False),
        ("softmax", 96_900, 100_000, False),
        ("copy", 12_000, 10_000, True),
        ("copy", 12_001, 10_000, False),
        ("embedding", 7_999, 10_000, False),
        ("softmax/uprobes", 97_900, 99_900, True),
    ],
)
def test_a_phase_is_judged_by_what_it_is_and_how_long(name: str, measured_ns: int, truth_ns: int, holds: bool) -> None:
    """Evaluations by 99.9 %, other phases from 100 µs on by 97 %, shorter ones by 2 µs."""
    statement = phase_statement(row(name, measured_ns, truth_ns))
    assert (statement.name, statement.holds) == (f"fidelity/phase/{name}", holds)


def test_the_error_of_a_short_phase_is_that_of_its_occurrences() -> None:
    """Medians that agree do not hide occurrences that do not."""
    assert phase_statement(row("copy", 10_000, 10_000, error_ns=-2_500)).holds is False


@pytest.mark.parametrize(
    ("measured_ns", "truth_ns", "holds"),
    [(91_000, 100_000, True), (90_900, 100_000, False), (109_100, 100_000, False), (99_000, 99_900, None)],
)
def test_a_kernel_is_judged_from_a_tenth_of_a_millisecond_on(
    measured_ns: int, truth_ns: int, holds: bool | None
) -> None:
    """Each by 91 %, the engine's by the worst; a shorter one is not judged, and says so."""
    statement = kernel_statement(row(ADD, measured_ns, truth_ns))
    assert statement.holds is holds
    assert ("reported and not judged" in statement.evidence) == (holds is None)
    rows = [row(ENGINE, measured_ns, 100_000), row(f"{ENGINE}-b", 100_000, 100_000), row(ADD, 1, 100_000)]
    of_engine = engine_statement(rows)
    assert of_engine.holds is (holds is not False)
    assert ENGINE in of_engine.evidence


def test_what_is_not_measured_is_undecided() -> None:
    for statement in (
        phase_statement(row("decode", None, None)),
        kernel_statement(row(ADD, None, None, problem="no memory")),
        mean_statement([row(ADD, None, None)]),
        engine_statement([row(ADD, 100_000, 100_000)]),
    ):
        assert statement.holds is None
    assert kernel_statement(row(ADD, None, None, problem="no memory")).evidence == "no memory"


def test_kernels_are_told_apart_by_length() -> None:
    """From 0.1 ms on they are long, from 10 µs on short, and below they are not reported."""
    rows = [row(f"{ADD}{ns}", ns, ns) for ns in (9_999, 10_000, 99_999, 100_000, 10**9)]
    rows += [row(ADD, None, None), row("decode", 10**6, 10**6)]
    assert [each.ground_truth_ns for each in long_kernels(rows)] == [100_000, 10**9]
    assert [each.ground_truth_ns for each in short_kernels(rows)] == [10_000, 99_999]


def test_the_mean_is_over_long_kernels() -> None:
    rows = [row(f"{ADD}-a", 96_000, 100_000), row(f"{ADD}-b", 99_000, 100_000), row(f"{ADD}-c", 50_000, 90_000)]
    statement = mean_statement(rows)
    assert statement.holds is True
    assert statement.evidence == f"mean 97.50 % of 2 kernels, worst 96.00 % ({ADD}-a)"
    assert mean_statement([*rows, row(f"{ADD}-d", 97_000, 100_000)]).holds is False


def test_a_run_states_every_row_with_a_limit() -> None:
    """Phases, long kernels, kernels that are missing, and the mean; sums of operators and short kernels have none."""
    rows: list[FidelityRow] = [
        row("decode", 10**6, 10**6),
        row("decode", 10**6, 10**6, kind=FidelityKind.OPERATORS),
        row(f"{ADD}-long", 10**6, 10**6),
        row(f"{ADD}-short", 10**4, 10**4),
        row(f"{ADD}-missing", None, None),
    ]
    assert [(each.name, each.holds) for each in statements(rows)] == [
        ("fidelity/phase/decode", True),
        (f"fidelity/{ADD}-long", True),
        (f"fidelity/{ADD}-missing", None),
        ("fidelity/kernel/mean", True),
    ]
    assert statements(()) == ()
    assert (mean_accuracy_percent([]), worst_row([row(ADD, None, None)])) == (None, None)
