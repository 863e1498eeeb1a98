"""What accuracy is asked for, of phases and of kernels, and which rows fall short of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.units import format_ns, format_signed_ns
from perfsuite.verdict.statement import Statement

#: Accuracy of the phases that hold an evaluation, in percent.
LEAST_EVALUATION_PERCENT = 99.9
#: Accuracy of other phases, where they are as long as this, in percent; shorter ones are judged by their error.
LEAST_PHASE_PERCENT = 97.0
SHORT_PHASE_NS = 100_000
MOST_ERROR_NS = 2_000
#: Accuracy of kernels of this length and longer, each and on average, in percent; shorter ones are reported apart.
LEAST_KERNEL_NS = 100_000
LEAST_KERNEL_PERCENT = 91.0
LEAST_MEAN_PERCENT = 97.5
#: Kernels shorter than this are not even reported.
SHORTEST_KERNEL_NS = 10_000

_ENGINE_PREFIX = "kernel/engine/"

_EVALUATIONS = {Phase.END_TO_END.value, Phase.PREFILL.value, Phase.DECODE.value}


#: The name of `mean_statement`, and of `engine_statement`.
MEAN_NAME = "fidelity/kernel/mean"
ENGINE_NAME = "fidelity/kernel/engine"


def long_kernels(rows: Sequence[FidelityRow]) -> tuple[FidelityRow, ...]:
    """Return the measured kernels whose ground truth is `LEAST_KERNEL_NS` or more."""
    return tuple(row for row in _measured_kernels(rows) if (row.ground_truth_ns or 0) >= LEAST_KERNEL_NS)


def short_kernels(rows: Sequence[FidelityRow]) -> tuple[FidelityRow, ...]:
    """Return the measured kernels between `SHORTEST_KERNEL_NS` and `LEAST_KERNEL_NS`."""
    kernels = _measured_kernels(rows)
    return tuple(row for row in kernels if SHORTEST_KERNEL_NS <= (row.ground_truth_ns or 0) < LEAST_KERNEL_NS)


def mean_accuracy_percent(rows: Sequence[FidelityRow]) -> float | None:
    """Return the mean accuracy; None without rows."""
    found = [row.accuracy_percent for row in rows if row.accuracy_percent is not None]
    return fmean(found) if found else None


def worst_row(rows: Sequence[FidelityRow]) -> FidelityRow | None:
    """Return the least accurate row; None without rows."""
    found = [row for row in rows if row.accuracy_percent is not None]
    return min(found, key=lambda row: row.accuracy_percent or 0.0, default=None)


def phase_statement(row: FidelityRow) -> Statement:
    """Say whether a phase is as accurate as it must be."""
    is_evaluation = row.name.partition("/")[0] in _EVALUATIONS
    is_short = not is_evaluation and (row.ground_truth_ns or 0) < SHORT_PHASE_NS
    least = LEAST_EVALUATION_PERCENT if is_evaluation else LEAST_PHASE_PERCENT
    claim = f"within {format_ns(MOST_ERROR_NS)}" if is_short else f"accurate to {least:g} %"
    holds: bool | None = None
    if row.is_measured and row.error_ns is not None and row.accuracy_percent is not None:
        holds = abs(row.error_ns) <= MOST_ERROR_NS if is_short else row.accuracy_percent >= least
    return Statement(name=f"fidelity/phase/{row.name}", claim=claim, holds=holds, evidence=evidence(row))


def kernel_statement(row: FidelityRow) -> Statement:
    """Say whether a kernel is as accurate as it must be; undecided where it is too short to be judged."""
    holds: bool | None = None
    text = evidence(row)
    if row.is_measured and row.accuracy_percent is not None:
        if (row.ground_truth_ns or 0) >= LEAST_KERNEL_NS:
            holds = row.accuracy_percent >= LEAST_KERNEL_PERCENT
        else:
            text += f"; shorter than {format_ns(LEAST_KERNEL_NS)}, so that it is reported and not judged"
    claim = f"accurate to {LEAST_KERNEL_PERCENT:g} %"
    return Statement(name=f"fidelity/{row.name}", claim=claim, holds=holds, evidence=text)


def mean_statement(rows: Sequence[FidelityRow]) -> Statement:
    """Say whether kernels of `LEAST_KERNEL_NS` and more are accurate on average; undecided without any."""
    found = long_kernels(rows)
    mean, worst = mean_accuracy_percent(found), worst_row(found)
    claim = f"kernels of {format_ns(LEAST_KERNEL_NS)} and more are accurate to {LEAST_MEAN_PERCENT:g} % on average"
    if mean is None or worst is None:
        text = "no kernel of this length was measured"
        return Statement(name=MEAN_NAME, claim=claim, holds=None, evidence=text)
    text = f"mean {mean:.2f} % of {len(found)} kernels, worst {worst.accuracy_percent:.2f} % ({worst.name})"
    return Statement(name=MEAN_NAME, claim=claim, holds=mean >= LEAST_MEAN_PERCENT, evidence=text)


def engine_statement(rows: Sequence[FidelityRow]) -> Statement:
    """Say whether every kernel of the engine's of `LEAST_KERNEL_NS` and more is accurate; undecided without any."""
    found = [row for row in long_kernels(rows) if row.name.startswith(_ENGINE_PREFIX)]
    worst = worst_row(found)
    claim = f"each of the engine's kernels is accurate to {LEAST_KERNEL_PERCENT:g} %"
    if worst is None or worst.accuracy_percent is None:
        text = "no kernel of the engine's was measured"
        return Statement(name=ENGINE_NAME, claim=claim, holds=None, evidence=text)
    text = f"the worst of {len(found)} is {worst.name}: {evidence(worst)}"
    holds = worst.accuracy_percent >= LEAST_KERNEL_PERCENT
    return Statement(name=ENGINE_NAME, claim=claim, holds=holds, evidence=text)


def statements(rows: Sequence[FidelityRow]) -> tuple[Statement, ...]:
    """Say of every row that has a limit whether it is within it, and of the kernels' mean where there are any."""
    kernels = [row for row in rows if row.kind is FidelityKind.KERNELS]
    judged = [row for row in kernels if not row.is_measured or (row.ground_truth_ns or 0) >= LEAST_KERNEL_NS]
    return (
        *(phase_statement(row) for row in rows if row.kind is FidelityKind.PHASES),
        *(kernel_statement(row) for row in judged),
        *((mean_statement(kernels),) if kernels else ()),
    )


def evidence(row: FidelityRow) -> str:
    """Tell a row in a line."""
    if not row.is_measured or row.accuracy_percent is None:
        return row.problem or "it was not measured"
    return (
        f"{format_ns(row.measured_ns)} against {format_ns(row.ground_truth_ns)} by {row.ground_truth}, "
        f"{format_signed_ns(row.error_ns)}, {row.accuracy_percent:.2f} %"
    )


def _measured_kernels(rows: Sequence[FidelityRow]) -> list[FidelityRow]:
    return [row for row in rows if row.kind is FidelityKind.KERNELS and row.is_measured]


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
