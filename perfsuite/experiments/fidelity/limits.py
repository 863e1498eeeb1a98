"""What accuracy is asked for, of phases and of kernels, and which rows fall short of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement, Outcome, Statement, told_judgement
from perfsuite.units import format_ns, format_signed_ns

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
    return _kernels(rows, LEAST_KERNEL_NS, math.inf)


def short_kernels(rows: Sequence[FidelityRow]) -> tuple[FidelityRow, ...]:
    """Return the measured kernels between `SHORTEST_KERNEL_NS` and `LEAST_KERNEL_NS`."""
    return _kernels(rows, SHORTEST_KERNEL_NS, LEAST_KERNEL_NS)


def _kernels(rows: Sequence[FidelityRow], least_ns: float, below_ns: float) -> tuple[FidelityRow, ...]:
    kernels = (row for row in rows if row.kind is FidelityKind.KERNELS and row.is_measured)
    return tuple(row for row in kernels if least_ns <= (row.ground_truth_ns or 0) < below_ns)


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
    holds, text = None, "no kernel of this length was measured"
    if mean is not None and worst is not None:
        holds = mean >= LEAST_MEAN_PERCENT
        text = f"mean {mean:.2f} % of {len(found)} kernels, worst {worst.accuracy_percent:.2f} % ({worst.name})"
    return Statement(name=MEAN_NAME, claim=claim, holds=holds, evidence=text)


def engine_statement(rows: Sequence[FidelityRow]) -> Statement:
    """Say whether every kernel of the engine's of `LEAST_KERNEL_NS` and more is accurate; undecided without any."""
    found = [row for row in long_kernels(rows) if row.name.startswith(_ENGINE_PREFIX)]
    worst = worst_row(found)
    claim = f"each of the engine's kernels is accurate to {LEAST_KERNEL_PERCENT:g} %"
    holds, text = None, "no kernel of the engine's was measured"
    if worst is not None and worst.accuracy_percent is not None:
        holds = worst.accuracy_percent >= LEAST_KERNEL_PERCENT
        text = f"the worst of {len(found)} is {worst.name}: {evidence(worst)}"
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


#: The kind of the cases, and the first part of their ids.
FIDELITY = "fidelity"
PHASE_PREFIX = f"{FIDELITY}/phase/"

_OUTCOMES = {True: Outcome.PASS, False: Outcome.IMPOSSIBLE, None: Outcome.INVALID}


def judge_fidelity(run: FidelityRun | None, case_id: str, *, reason: str = "it was not measured") -> Judgement:
    """Judge one case; without a run, `reason` says why there is none.

    PASS where its limit is met, IMPOSSIBLE where the ground truth contradicts what was measured, and INVALID where
    either is missing or nothing can be known from them.
    """
    phases, kernels = ([] if run is None else run.of(kind) for kind in (FidelityKind.PHASES, FidelityKind.KERNELS))
    rows = {f"{PHASE_PREFIX}{row.name}": row for row in phases} | {f"{FIDELITY}/{row.name}": row for row in kernels}
    row = rows.get(case_id)
    if kernels and case_id in (MEAN_NAME, ENGINE_NAME):
        statement = mean_statement(kernels) if case_id == MEAN_NAME else engine_statement(kernels)
    elif row is not None:
        statement = phase_statement(row) if row.kind is FidelityKind.PHASES else kernel_statement(row)
    else:
        problems = "" if run is None else "; ".join(run.problems)
        return told_judgement(case_id, FIDELITY, Outcome.INVALID, problems or reason)
    text = f"{statement.claim}: {statement.evidence}"
    words = {True: text, False: f"measured wrongly, expected {text}", None: statement.evidence}
    times_ns = (None, None) if row is None else (row.measured_ns, row.ground_truth_ns)
    measured_ns, expected_ns = (None if ns is None else round(ns) for ns in times_ns)
    judgement = told_judgement(case_id, FIDELITY, _OUTCOMES[statement.holds], words[statement.holds])
    return replace(judgement, measured_ns=measured_ns, expected_ns=expected_ns)
