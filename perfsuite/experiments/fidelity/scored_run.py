"""Fidelity of the suite's own timings: a row a phase, an operator sum or a kernel, and how accurate it must be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from operator import itemgetter
from statistics import fmean
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import plain_fields
from perfsuite.records.duplication import KernelDuplication
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement, Outcome, Statement, told_judgement
from perfsuite.units import format_ns, format_signed_ns

#: A relative error of 1 is 100 percent, and 1000 µs for each ms.
_PERCENT = 100.0
_US_PER_MS = 1000.0


def accuracy_percent(measured_ns: float, ground_truth_ns: float) -> float:
    """Return alpha = 100 (1 - abs(L - G) / G), where L is the measured latency and G its ground truth.

    100 is exact; a latency of more than twice its ground truth gives less than 0.

    Raises PerfsuiteError: the ground truth is not above 0, or the measured latency is below it; neither may be
    infinite.

    *Source*: lm-Meter, its tables of phases and kernels, whose printed rows follow this formula.
    """
    return _PERCENT * (1.0 - _relative_error(measured_ns, ground_truth_ns))


def scaled_error_us_per_ms(measured_ns: float, ground_truth_ns: float) -> float:
    """Return 1000 abs(L - G) / G: by how many µs each ms of the ground truth G is missed by the latency L.

    Raises as `accuracy_percent` does. *Source*: lm-Meter, the last column of the same tables.
    """
    return _US_PER_MS * _relative_error(measured_ns, ground_truth_ns)


def _relative_error(measured_ns: float, ground_truth_ns: float) -> float:
    if not 0.0 < ground_truth_ns < math.inf:
        raise PerfsuiteError(f"fidelity: ground_truth_ns is {ground_truth_ns!r}, expected a finite number above 0")
    if not 0.0 <= measured_ns < math.inf:
        raise PerfsuiteError(f"fidelity: measured_ns is {measured_ns!r}, expected a finite number of 0 or more")
    return abs(measured_ns - ground_truth_ns) / ground_truth_ns


#: Raised whenever a key of a run as JSON changes its meaning.
SCHEMA = 1


class FidelityKind(str, Enum):
    """What a row is of; the value is its key in JSON."""

    PHASES = "phases"
    OPERATORS = "operators"
    KERNELS = "kernels"


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityRow:
    """One latency as the suite tells it, and as its ground truth has it."""

    #: The phase, or the kernel's case id; a kernel of the engine's begins with its phase.
    name: str
    kind: FidelityKind
    #: None where there is no ground truth; `problem` says why.
    measured_ns: float | None
    ground_truth_ns: float | None
    #: Occurrences of a phase, or duplicates in a round.
    n: int
    #: The median of the differences, one by one, ns; of kernels the difference of the medians.
    error_ns: float | None = None
    #: The least and the most of the ground truth, over rounds; None where it has no rounds.
    interval_ns: tuple[float, float] | None = None
    #: Where the ground truth comes from, in a word: ``interposed``, ``uprobes``, ``duplication``.
    ground_truth: str
    #: Times beside these, by name, ns, such as a kernel's ``occupied_ns``.
    beside_ns: Mapping[str, float] = field(default_factory=dict)
    #: What a reader must know, such as fewer duplicates than asked for.
    note: str = ""
    problem: str | None = None

    @property
    def is_measured(self) -> bool:
        """Whether there are both latencies and nothing speaks against them."""
        return self.problem is None and self.measured_ns is not None and bool(self.ground_truth_ns)

    @property
    def accuracy_percent(self) -> float | None:
        return self._scored(accuracy_percent)

    @property
    def scaled_error_us_per_ms(self) -> float | None:
        return self._scored(scaled_error_us_per_ms)

    def _scored(self, score: Callable[[float, float], float]) -> float | None:
        return score(self.measured_ns or 0.0, self.ground_truth_ns or 0.0) if self.is_measured else None

    def to_plain(self) -> dict[str, Any]:
        scores = plain_fields(self, "accuracy_percent", "scaled_error_us_per_ms", "error_ns", "n")
        return {
            **plain_fields(self, "name", "measured_ns", "ground_truth_ns"),
            **scores,
            "interval_ns": self.interval_ns and list(self.interval_ns),
            "ground_truth": self.ground_truth,
            **self.beside_ns,
            **plain_fields(self, "note", "problem"),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityRun:
    """Everything that one run compared, and under which conditions."""

    device: str
    #: The OpenCL platform and device of the kernels; None where none was measured.
    platform: str | None
    #: Such as ``governor`` and ``clocks``.
    conditions: Mapping[str, str]
    rows: tuple[FidelityRow, ...]
    #: What could not be measured at all, and why.
    problems: tuple[str, ...] = ()

    def of(self, kind: FidelityKind) -> tuple[FidelityRow, ...]:
        return tuple(row for row in self.rows if row.kind is kind)

    def to_plain(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **plain_fields(self, "device", "platform"),
            "conditions": dict(self.conditions),
            **{kind.value: [row.to_plain() for row in self.of(kind)] for kind in FidelityKind},
            "problems": list(self.problems),
        }


def kernel_row(duplication: KernelDuplication) -> FidelityRow:
    """Return a kernel's row: END - START against G, with the device's time line beside it.

    `KernelDuplication` has the formulas; the interval is that of G over the rounds.
    """
    truth, execution, problem = duplication.ground_truth_ns, duplication.execution_ns, duplication.problem
    truths, n = duplication.ground_truths_ns, duplication.n_duplicates
    beside = plain_fields(duplication, "occupied_ns", "base_execution_ns")
    if truth is None:
        problem = problem or "no round was measured"
    elif truth <= 0:
        wrong = f"the ground truth is {truth:.0f} ns: the base run took as long as the duplicated one"
        problem = problem or wrong
    fewer = f"{n} duplicates of {duplication.n_wanted}: the time budget allows no more"
    return FidelityRow(
        name=duplication.name,
        kind=FidelityKind.KERNELS,
        measured_ns=execution,
        ground_truth_ns=truth,
        error_ns=None if truth is None or execution is None else execution - truth,
        n=n,
        interval_ns=(min(truths), max(truths)) if truths else None,
        ground_truth="duplication",
        beside_ns={name: ns for name, ns in beside.items() if ns is not None},
        note="" if n >= duplication.n_wanted else fewer,
        problem=problem,
    )


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

_EVALUATIONS = {Phase.END_TO_END.value, Phase.PREFILL.value, Phase.DECODE.value}

#: The kind of the cases, the first parts of their ids, and the names of `mean_statement` and of `engine_statement`.
FIDELITY = "fidelity"
PHASE_PREFIX = f"{FIDELITY}/phase/"
MEAN_NAME = f"{FIDELITY}/kernel/mean"
ENGINE_NAME = f"{FIDELITY}/kernel/engine"


def measured_kernels(rows: Sequence[FidelityRow], least_ns: int, below_ns: float = math.inf) -> list[FidelityRow]:
    """Return the measured kernels whose ground truth is `least_ns` or more, and less than `below_ns`."""
    kernels = (row for row in rows if row.kind is FidelityKind.KERNELS and row.is_measured)
    return [row for row in kernels if least_ns <= (row.ground_truth_ns or 0) < below_ns]


def mean_and_worst(rows: Sequence[FidelityRow]) -> tuple[float, float, FidelityRow]:
    """Return the mean accuracy and the worst, in percent, and whose that is; of one measured row or more."""
    found = [(row.accuracy_percent or 0.0, row) for row in rows]
    return fmean(percent for percent, _ in found), *min(found, key=itemgetter(0))


def row_statement(row: FidelityRow) -> Statement:
    """Say whether a phase or a kernel is as accurate as it must be; undecided where a kernel is too short for that."""
    is_kernel, is_evaluation = row.kind is FidelityKind.KERNELS, row.name.partition("/")[0] in _EVALUATIONS
    is_short = not is_evaluation and (row.ground_truth_ns or 0) < (LEAST_KERNEL_NS if is_kernel else SHORT_PHASE_NS)
    least = LEAST_KERNEL_PERCENT if is_kernel else LEAST_EVALUATION_PERCENT if is_evaluation else LEAST_PHASE_PERCENT
    claim, text, holds = f"accurate to {least:g} %", _evidence(row), None
    if is_short and not is_kernel:
        claim = f"within {format_ns(MOST_ERROR_NS)}"
    if row.error_ns is not None and row.accuracy_percent is not None:
        if is_short and is_kernel:
            text += f"; shorter than {format_ns(LEAST_KERNEL_NS)}, so that it is reported and not judged"
        else:
            holds = abs(row.error_ns) <= MOST_ERROR_NS if is_short else row.accuracy_percent >= least
    prefix = f"{FIDELITY}/" if is_kernel else PHASE_PREFIX
    return Statement(name=f"{prefix}{row.name}", claim=claim, holds=holds, evidence=text)


def mean_statement(rows: Sequence[FidelityRow]) -> Statement:
    """Say whether kernels of `LEAST_KERNEL_NS` and more are accurate on average; undecided without any."""
    claim = f"kernels of {format_ns(LEAST_KERNEL_NS)} and more are accurate to {LEAST_MEAN_PERCENT:g} % on average"
    holds, text = None, "no kernel of this length was measured"
    if found := measured_kernels(rows, LEAST_KERNEL_NS):
        mean, least, worst = mean_and_worst(found)
        holds = mean >= LEAST_MEAN_PERCENT
        text = f"mean {mean:.2f} % of {len(found)} kernels, worst {least:.2f} % ({worst.name})"
    return Statement(name=MEAN_NAME, claim=claim, holds=holds, evidence=text)


def engine_statement(rows: Sequence[FidelityRow]) -> Statement:
    """Say whether every kernel of the engine's of `LEAST_KERNEL_NS` and more is accurate; undecided without any."""
    claim = f"each of the engine's kernels is accurate to {LEAST_KERNEL_PERCENT:g} %"
    holds, text = None, "no kernel of the engine's was measured"
    kernels = measured_kernels(rows, LEAST_KERNEL_NS)
    if found := [row for row in kernels if row.name.startswith("kernel/engine/")]:
        _, least, worst = mean_and_worst(found)
        holds = least >= LEAST_KERNEL_PERCENT
        text = f"the worst of {len(found)} is {worst.name}: {_evidence(worst)}"
    return Statement(name=ENGINE_NAME, claim=claim, holds=holds, evidence=text)


def statements(rows: Sequence[FidelityRow]) -> tuple[Statement, ...]:
    """Say of every row that has a limit whether it is within it, and of the kernels' mean where there are any."""
    kernels = [row for row in rows if row.kind is FidelityKind.KERNELS]
    judged = [row for row in kernels if not row.is_measured or (row.ground_truth_ns or 0) >= LEAST_KERNEL_NS]
    return (
        *(row_statement(row) for row in rows if row.kind is FidelityKind.PHASES),
        *map(row_statement, judged),
        *((mean_statement(kernels),) if kernels else ()),
    )


def _evidence(row: FidelityRow) -> str:
    if row.accuracy_percent is None:
        return row.problem or "it was not measured"
    return (
        f"{format_ns(row.measured_ns)} against {format_ns(row.ground_truth_ns)} by {row.ground_truth}, "
        f"{format_signed_ns(row.error_ns)}, {row.accuracy_percent:.2f} %"
    )


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
        statement = row_statement(row)
    else:
        problems = "" if run is None else "; ".join(run.problems)
        return told_judgement(case_id, FIDELITY, Outcome.INVALID, problems or reason)
    text = f"{statement.claim}: {statement.evidence}"
    words = {True: text, False: f"measured wrongly, expected {text}", None: statement.evidence}
    times_ns = (None, None) if row is None else (row.measured_ns, row.ground_truth_ns)
    measured_ns, expected_ns = (None if ns is None else round(ns) for ns in times_ns)
    judgement = told_judgement(case_id, FIDELITY, _OUTCOMES[statement.holds], words[statement.holds])
    return replace(judgement, measured_ns=measured_ns, expected_ns=expected_ns)
