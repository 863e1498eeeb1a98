"""Fidelity of the suite's own timings: one row a phase, an operator sum or a kernel, against its ground truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.duplication import KernelDuplication

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
        """`perfsuite.experiments.fidelity.scored_run.accuracy_percent` of the row; None where it is not measured."""
        return self._scored(accuracy_percent)

    @property
    def scaled_error_us_per_ms(self) -> float | None:
        """The scaled error of the row; None where it is not measured."""
        return self._scored(scaled_error_us_per_ms)

    def _scored(self, score: Callable[[float, float], float]) -> float | None:
        if not self.is_measured or self.measured_ns is None or self.ground_truth_ns is None:
            return None
        return score(self.measured_ns, self.ground_truth_ns)

    def to_plain(self) -> dict[str, Any]:
        """Return the row as JSON-able values."""
        return {
            "name": self.name,
            "measured_ns": self.measured_ns,
            "ground_truth_ns": self.ground_truth_ns,
            "accuracy_percent": self.accuracy_percent,
            "scaled_error_us_per_ms": self.scaled_error_us_per_ms,
            "error_ns": self.error_ns,
            "n": self.n,
            "interval_ns": None if self.interval_ns is None else list(self.interval_ns),
            "ground_truth": self.ground_truth,
            **self.beside_ns,
            "note": self.note,
            "problem": self.problem,
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
        """Return the rows of a kind."""
        return tuple(row for row in self.rows if row.kind is kind)

    def to_plain(self) -> dict[str, Any]:
        """Return the run as JSON-able values."""
        return {
            "schema": SCHEMA,
            "device": self.device,
            "platform": self.platform,
            "conditions": dict(self.conditions),
            **{kind.value: [row.to_plain() for row in self.of(kind)] for kind in FidelityKind},
            "problems": list(self.problems),
        }


def kernel_row(duplication: KernelDuplication) -> FidelityRow:
    """Return a kernel's row: END - START against G, with the device's time line beside it.

    `KernelDuplication` has the formulas; the interval is that of G over the rounds.
    """
    truth, execution = duplication.ground_truth_ns, duplication.execution_ns
    truths, n = duplication.ground_truths_ns, duplication.n_duplicates
    beside = {"occupied_ns": duplication.occupied_ns, "base_execution_ns": duplication.base_execution_ns}
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
        problem=duplication.problem or _problem(truth),
    )


def _problem(truth: float | None) -> str | None:
    if truth is None:
        return "no round was measured"
    return None if truth > 0 else f"the ground truth is {truth:.0f} ns: the base run took as long as the duplicated one"
