"""Verdicts on cases of fidelity."""

from __future__ import annotations

import pytest

from perfsuite.experiments.fidelity.judgement import judge_fidelity
from perfsuite.experiments.fidelity.scored_run import FidelityRun
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
    """What was measured, and what was to be expected, stand in the judgement; neither where they are unknown."""
    judgement = judge_fidelity(RUN, "fidelity/phase/prefill")
    assert (judgement.measured_ns, judgement.expected_ns, judgement.change_ratio) == (1_100_000, 10**6, None)
    unknown = judge_fidelity(RUN, "fidelity/phase/copy")
    assert unknown.measured_ns is unknown.expected_ns is None


def test_without_a_run_there_is_a_reason() -> None:
    """A run that failed as a whole leaves every case INVALID."""
    for case_id in ("fidelity/phase/decode", "fidelity/kernel/mean", "fidelity/kernel/engine"):
        judgement = judge_fidelity(None, case_id, reason="the tracer does not build")
        assert (judgement.outcome, judgement.reason) == (Outcome.INVALID, "the tracer does not build")


def test_no_kernels_are_no_mean() -> None:
    """A run in which no kernel was measured has no statement about them."""
    phases = FidelityRun(device="host", platform=None, conditions={}, rows=RUN.rows[:1])
    judgement = judge_fidelity(phases, "fidelity/kernel/mean")
    assert (judgement.outcome, judgement.reason) == (Outcome.INVALID, "it was not measured")
