"""What a comparison with stored times lets pass: a margin, what can be resolved, or a share of the step."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.verdict.resolution import DEFAULT_RESOLUTION_RATIO
from perfsuite.verdict.significance import Change
from perfsuite.verdict.step_share import StepShare


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a comparison with stored times lets pass."""

    #: The change that passes.
    margin_ratio: float
    #: What two sessions may differ by without any change, until enough of them are stored.
    session_spread_ratio: float
    #: Where only a slowdown of more than this could be found, nothing passes for want of one.
    most_resolution_ratio: float = DEFAULT_RESOLUTION_RATIO
    #: The share of its step that the case may change by; None where only the margin counts.
    share: StepShare | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A case beside its stored times, with what may pass."""

    change: Change
    #: What the case took before, ns.
    old_ns: float
    #: The slowdown that would be found.
    resolution_ratio: float
    allowed: Allowance

    @property
    def share_ratio(self) -> float:
        """The change of the case that its share of the step comes to."""
        return 0.0 if self.allowed.share is None else self.allowed.share.margin_ratio(self.old_ns)

    @property
    def margin_ratio(self) -> float:
        """The change that passes: the margin, or a share of the step where that is more."""
        return max(self.allowed.margin_ratio, self.share_ratio)

    @property
    def passed_ratio(self) -> float:
        """The slowdown that a PASS rules out without a share: the margin, or the resolution where that is more."""
        is_fine = self.resolution_ratio <= self.allowed.most_resolution_ratio
        return max(self.allowed.margin_ratio, self.resolution_ratio if is_fine else 0.0)

    @property
    def passes_by_share(self) -> bool:
        """Whether the case passes by its share of the step, and by nothing finer."""
        return self.change.rules_out(self.share_ratio) and not self.change.rules_out(self.passed_ratio)

    @property
    def stated_ratio(self) -> float:
        """What the verdict speaks of: the slowdown that it rules out, or the one that would have been found."""
        if self.passes_by_share:
            return self.share_ratio
        is_ruled_out = self.change.upper_ratio - 1.0 < self.passed_ratio
        return self.passed_ratio if is_ruled_out else max(self.allowed.margin_ratio, self.resolution_ratio)
