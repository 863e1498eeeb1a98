"""What can be said of a case, and in which order of precedence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Outcome(str, Enum):
    """The verdict on one case; earlier members win where several hold."""

    INVALID = "invalid"
    IMPOSSIBLE = "impossible"
    INCOMPARABLE = "incomparable"
    REGRESSED = "regressed"
    SLOW = "slow"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    IMPROVED = "improved"
    PASS = "pass"

    @property
    def fails(self) -> bool:
        """Whether the case fails."""
        return self in (Outcome.IMPOSSIBLE, Outcome.REGRESSED, Outcome.SLOW)

    @property
    def decides(self) -> bool:
        """Whether the case was measured and compared; ``--perf-strict`` fails the others."""
        return self not in (Outcome.INVALID, Outcome.INCOMPARABLE, Outcome.INCONCLUSIVE, Outcome.NEW)


#: The exit code of a run that judged nothing; pytest's own end at 6, and leave room here.
NOTHING_JUDGED_EXIT = 10


def is_nothing_judged(outcomes: Iterable[Outcome]) -> bool:
    """Whether there are cases, of which none was decided and none is new."""
    found = set(outcomes)
    return bool(found) and not any(each.decides or each is Outcome.NEW for each in found)


#: The outcomes as they are shown, what weighs most first: what fails, what changed, what was not decided, the rest.
ORDER_OF_WEIGHT = (
    Outcome.REGRESSED,
    Outcome.IMPOSSIBLE,
    Outcome.SLOW,
    Outcome.IMPROVED,
    Outcome.INVALID,
    Outcome.INCOMPARABLE,
    Outcome.INCONCLUSIVE,
    Outcome.NEW,
    Outcome.PASS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One outcome that holds for a case, with its reason in one sentence."""

    outcome: Outcome
    reason: str


def foremost(findings: Iterable[Finding]) -> Finding:
    """Return the finding that takes precedence."""
    order = list(Outcome)
    return min(findings, key=lambda finding: order.index(finding.outcome))
