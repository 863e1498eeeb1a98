"""What is known of a run when it has ended, and its last screen is to be told."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.records.attribution import NO_ATTRIBUTION, Attribution
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import RunOrigin
from perfsuite.report.same_again import option_value
from perfsuite.report.verdict_words import in_order_of_weight


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """What is known of a run when it has ended."""

    judgements: tuple[Judgement, ...]
    #: None where it could not be written.
    run_path: str | None
    report_path: str | None
    origin: RunOrigin
    attribution: Attribution = NO_ATTRIBUTION
    #: Whether it was asked to record baselines, and whether somebody broke it off.
    is_recording: bool = False
    is_interrupted: bool = False

    def of(self, outcome: Outcome) -> tuple[Judgement, ...]:
        """Return the cases of an outcome, those that weigh most first."""
        return in_order_of_weight([each for each in self.judgements if each.outcome is outcome], self.attribution)

    @property
    def in_pairs(self) -> bool:
        """Whether an old side was measured along with the new one."""
        return any(each.n_pairs is not None for each in self.judgements)

    @property
    def is_injected(self) -> bool:
        """Whether something was slowed down on purpose."""
        return option_value(self.origin, "--perf-inject") is not None
