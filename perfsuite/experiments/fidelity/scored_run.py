"""Fidelity of the suite's own timings: one row a phase, an operator sum or a kernel, against its ground truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from perfsuite.experiments.fidelity.scores import accuracy_percent, scaled_error_us_per_ms

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
        """`perfsuite.experiments.fidelity.scores.accuracy_percent` of the row; None where it is not measured."""
        pair = self._pair()
        return None if pair is None else accuracy_percent(*pair)

    @property
    def scaled_error_us_per_ms(self) -> float | None:
        """`perfsuite.experiments.fidelity.scores.scaled_error_us_per_ms` of the row; None where it is not measured."""
        pair = self._pair()
        return None if pair is None else scaled_error_us_per_ms(*pair)

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

    def _pair(self) -> tuple[float, float] | None:
        if not self.is_measured or self.measured_ns is None or self.ground_truth_ns is None:
            return None
        return self.measured_ns, self.ground_truth_ns


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
