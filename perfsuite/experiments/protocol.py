"""What an experiment is: a question that can be asked of a device, with cases of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupSamples
from perfsuite.records.case import Case, Expectation
from perfsuite.records.outcome import Judgement, Outcome, Statement


class Experiment(ABC):
    """One experiment of a run, which enumerates cases, measures them all at once, and judges each by itself."""

    #: The kind of its cases, and the first part of their ids.
    kind: str

    @abstractmethod
    def cases(self) -> Iterator[Case]:
        """Enumerate the cases; nothing is measured yet, and the device is not asked."""

    @abstractmethod
    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return how many steps of progress the given cases are."""

    @abstractmethod
    def measure(self, case_ids: Collection[str], progress: ProgressLine) -> None:
        """Measure what the given cases need; a `PerfsuiteError` is the reason of all of them."""

    @abstractmethod
    def judge(self, case_id: str, reason: str) -> Judgement:
        """Judge one case; `reason` says why it was not measured, where it was not."""

    def is_measured(self, case_id: str, *, has_ended: bool) -> bool:
        """Whether an interrupted run can judge a case; `has_ended` says whether `measure` came to its end."""
        return has_ended

    def remark(self, case: Case, outcome: Outcome) -> str:
        """Return what this experiment adds to the verdict on another case; empty where it adds nothing."""
        return ""

    def keep(self) -> bool:
        """Keep what ``--baseline=record`` asks for; return whether this experiment keeps anything at all."""
        return False

    def notes(self) -> tuple[str, ...]:
        """Return what the closing lines say beside the cases."""
        return ()

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """End what still runs."""


class Sweeps(Protocol):
    """Workloads beside the run's own, which a run measures as one group, and statements about them."""

    def cases(self) -> Iterator[Case]:
        """Enumerate the cases; nothing is measured yet."""

    def statements(self) -> Iterator[str]:
        """Name what is checked beside each case by itself."""

    def only(self, names: Sequence[str]) -> Sweeps | None:
        """Leave out what no named case or statement is of; None where nothing is left."""

    @property
    def n_steps(self) -> int:
        """How many steps of progress they are."""

    def measure(self, progress: ProgressLine) -> GroupSamples:
        """Measure them all, and keep what was measured in the run's folder."""

    def expectation(self, case_id: str) -> Expectation:
        """Return what is known of a case's time; nothing before they were measured."""

    @property
    def told(self) -> tuple[Statement, ...]:
        """The statements that somebody has asked for."""

    def statement(self, name: str) -> Statement | None:
        """Check a statement; None where they were not measured."""
