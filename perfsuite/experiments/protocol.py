"""What an experiment is: a question that can be asked of a device, with cases of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping

from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.samples import GroupSamples
from perfsuite.records.case import Case, Expectation
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement, Outcome, Statement


class Selection(dict[str, float | None]):
    """What a run measures of an experiment: by case id or statement, the margin that its test's marker sets."""

    #: Whether nothing else that takes its time from the run's budget is measured beside it.
    is_alone: bool = True


class Experiment(ABC):
    """One experiment of a run, which enumerates cases, measures them all at once, and judges each.

    One with a reference leaves the judging to the run: by pairs, by a forecast, and by a baseline, which has one file
    and one fingerprint for all of its cases.
    """

    #: The kind of its cases, and the first part of their ids.
    kind: str
    #: Whether the times of its cases are judged by a reference; `measure` returns them then, and `judge` is not asked.
    has_reference: bool = False
    #: Whether it takes its time from the run's budget, so that two such share it.
    shares_budget: bool = False
    #: Whether a quick calibration that is lacking is made before it.
    needs_calibration: bool = False
    #: Whether times are measured, so that the ceilings are as well.
    is_timed: bool = True

    @property
    def kinds(self) -> Collection[str]:
        """All kinds of its cases."""
        return (self.kind,)

    @property
    def name(self) -> str:
        """What run.json, the baselines and messages call it."""
        return self.kind

    @abstractmethod
    def cases(self) -> Iterator[Case]:
        """Enumerate the cases; nothing is measured yet, and the device is not asked."""

    def statements(self) -> Iterator[str]:
        """Name what is checked beside each case by itself."""
        yield from ()

    @abstractmethod
    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return how many steps of progress the given cases are."""

    @abstractmethod
    def measure(self, case_ids: Selection, progress: ProgressLine) -> GroupSamples | None:
        """Measure what the given cases need; a `PerfsuiteError` is the reason of all of them."""

    def judge(self, case_id: str, reason: str) -> Judgement:
        """Judge one case; `reason` says why it was not measured, where it was not."""
        raise NotImplementedError

    def statement(self, name: str, reason: str) -> Statement:
        """Check a statement; `reason` says why what it is about was not measured, where that is known."""
        raise NotImplementedError

    def expectation(self, case: Case) -> Expectation | None:
        """Return what is expected of a case that a reference judges; None leaves it to the run's forecasts."""
        return None

    def session_spread_ratio(self, case_id: str, asked: float) -> float:
        """Return what two sessions of a case differ by, which is `asked` unless it is known better."""
        return asked

    def steps_ns(self, group: GroupSamples) -> Mapping[Phase, float]:
        """Return what the steps took of which cases are shares, ns."""
        return {}

    def is_measured(self, case_id: str, *, has_ended: bool) -> bool:
        """Whether an interrupted run can judge a case; `has_ended` says whether `measure` came to its end."""
        return has_ended

    def remark(self, case: Case, outcome: Outcome) -> str:
        """Return what this experiment adds to the verdict on another case; empty where it adds nothing."""
        return ""

    def keep(self) -> bool:
        """Keep what ``--baseline=record`` asks for; return whether this experiment keeps anything at all."""
        return False

    def keep_engine(self, group: GroupSamples) -> str | None:
        """Keep what made samples that may become a reference; return its id in the board's store, if there is one."""
        return None

    def notes(self) -> tuple[str, ...]:
        """Return what the closing lines say beside the cases."""
        return ()

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """End what still runs."""
