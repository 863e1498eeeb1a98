"""The verdict on a case of fidelity: whether what the suite measured is what its ground truth says."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.experiments.fidelity.limits import (
    ENGINE_NAME,
    MEAN_NAME,
    engine_statement,
    kernel_statement,
    mean_statement,
    phase_statement,
)
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun
from perfsuite.records.judgement import Judgement, told_judgement
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.statement import Statement

#: The kind of the cases, and the first part of their ids.
FIDELITY = "fidelity"
PHASE_PREFIX = f"{FIDELITY}/phase/"

_OUTCOMES = {True: Outcome.PASS, False: Outcome.IMPOSSIBLE, None: Outcome.INVALID}


def judge_fidelity(run: FidelityRun | None, case_id: str, *, reason: str = "it was not measured") -> Judgement:
    """Judge one case; without a run, `reason` says why there is none.

    PASS where its limit is met, IMPOSSIBLE where the ground truth contradicts what was measured, and INVALID where
    either is missing or nothing can be told from them.
    """
    row = None if run is None else _row(run, case_id)
    statement = None if run is None else _statement(run, row, case_id)
    if statement is None:
        problems = "" if run is None else "; ".join(run.problems)
        return _judgement(case_id, None, Outcome.INVALID, problems or reason)
    text = f"{statement.claim}: {statement.evidence}"
    words = {True: text, False: f"measured wrongly, expected {text}", None: statement.evidence}
    return _judgement(case_id, row, _OUTCOMES[statement.holds], words[statement.holds])


def _row(run: FidelityRun, case_id: str) -> FidelityRow | None:
    is_phase = case_id.startswith(PHASE_PREFIX)
    kind = FidelityKind.PHASES if is_phase else FidelityKind.KERNELS
    name = case_id.removeprefix(PHASE_PREFIX if is_phase else f"{FIDELITY}/")
    return next((row for row in run.of(kind) if row.name == name), None)


def _statement(run: FidelityRun, row: FidelityRow | None, case_id: str) -> Statement | None:
    if case_id == MEAN_NAME and run.of(FidelityKind.KERNELS):
        return mean_statement(run.rows)
    if case_id == ENGINE_NAME and run.of(FidelityKind.KERNELS):
        return engine_statement(run.rows)
    if row is None:
        return None
    return phase_statement(row) if row.kind is FidelityKind.PHASES else kernel_statement(row)


def _judgement(case_id: str, row: FidelityRow | None, outcome: Outcome, reason: str) -> Judgement:
    measured_ns, truth_ns = (None, None) if row is None else (row.measured_ns, row.ground_truth_ns)
    return replace(
        told_judgement(case_id, FIDELITY, outcome, reason),
        measured_ns=None if measured_ns is None else round(measured_ns),
        expected_ns=None if truth_ns is None else round(truth_ns),
    )
