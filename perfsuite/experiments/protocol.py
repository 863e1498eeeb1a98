"""What a run examines beside its groups: cases with a measurement and a verdict of their own, and no baseline."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from perfsuite.expectation.cases import Case
from perfsuite.experiments.progress import ProgressLine
from perfsuite.records.judgement import Judgement


class Examination(Protocol):
    """One examination; an option asks for it."""

    @property
    def kind(self) -> str:
        """The kind of its cases."""

    def cases(self) -> Iterator[Case]:
        """Enumerate its cases; nothing is measured yet."""

    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return how many steps of progress the given cases are."""

    def measure(self, case_ids: Collection[str], progress: ProgressLine) -> None:
        """Measure what the given cases need; a `PerfsuiteError` is the reason of all of them."""

    def judge(self, case_id: str, reason: str) -> Judgement:
        """Judge one case; `reason` says why it was not measured, where it was not."""
