"""What a comparison with stored times lets pass: a margin, what can be resolved, or a share of the step.

How much a case may change before the step that it is part of changes by a share that matters.

Eight per cent of an operator that takes 1.5 us of a step of 6 ms is nothing that anybody could notice. A case passes a
change up to the larger of its own margin and a share of its step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

from perfsuite.records.case import Case
from perfsuite.records.events import GRAPH_PHASES, Phase
from perfsuite.verdict.significance import CONFIDENCE, MIN_SESSIONS, Change, t_quantile

#: Share of its step that a case may change by, unless an option says otherwise.
DEFAULT_STEP_SHARE_RATIO = 0.002

#: The step that each small phase is part of: the prompt's evaluation, or that of a token.
_STEP_OF_PHASE = {
    Phase.EMBEDDING: Phase.PREFILL,
    Phase.COPY: Phase.DECODE,
    Phase.SOFTMAX: Phase.DECODE,
    Phase.SAMPLING: Phase.DECODE,
}


def step_of(case: Case) -> Phase | None:
    """Return the step that a case is part of: that of an operator, or of a small phase; None of what is a whole."""
    if case.kind == "phase":
        return None if case.phase is None else _STEP_OF_PHASE.get(case.phase)
    return case.phase if case.phase in GRAPH_PHASES else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShare:
    """The share of a step that a case of it may change by."""

    step: Phase
    #: What the step takes as a whole.
    step_ns: float
    share_ratio: float

    def margin_ratio(self, case_ns: float) -> float:
        """Return the change that the share comes to, of a case that takes so long."""
        return self.share_ratio * self.step_ns / case_ns if case_ns > 0 else 0.0


def step_share(case: Case, *, steps_ns: Mapping[Phase, float], share_ratio: float) -> StepShare | None:
    """Return the share of the step that a case is part of; None of what is a whole, and where no step was measured."""
    step = step_of(case)
    if step is not None and step not in steps_ns:
        step = next((phase for phase in GRAPH_PHASES if phase in steps_ns), None)
    return None if step is None else StepShare(step=step, step_ns=steps_ns[step], share_ratio=share_ratio)


def step_margin_ratio(
    case: Case, margin_ratio: float, *, case_ns: float, steps_ns: Mapping[Phase, float], share_ratio: float
) -> float:
    """Return the change that passes: the margin, or `share_ratio` of the step where that is more.

    A case takes `case_ns` before the change; `steps_ns` are whole phases, as far as they were measured.
    """
    share = step_share(case, steps_ns=steps_ns, share_ratio=share_ratio)
    return margin_ratio if share is None else max(margin_ratio, share.margin_ratio(case_ns))


#: A slowdown of the resolution is reported in this share of runs.
POWER = 0.95

#: A coarser resolution than this passes nothing, unless an option says otherwise.
DEFAULT_RESOLUTION_RATIO = 0.30


def resolution_ratio(change: Change, *, n_sessions: int) -> float:
    r"""Return the slowdown that is found in 95 % of runs: a property of the spread, whatever the estimate came to.

    All in logarithms: let the estimate of a slowdown d be d + e, the noise e of the deviation :math:`\sigma`. The
    bounds lie :math:`r = q_{0.99}\,\sigma` from the estimate, so that the slowdown is found where d + e > r. That
    holds in 95 % of runs where :math:`d - r = q_{0.95}\,\sigma`, or

    .. math:: d = r \left(1 + q_{0.95} / q_{0.99}\right)

    With few sessions the spread that is in is as it is stated, and q the quantiles of the normal distribution: d is
    1.71 r. From five sessions on :math:`\sigma` is estimated by them and independent of e, so that
    :math:`e / \sigma` has Student's t with S - 1 degrees of freedom, and with it q: a device whose sessions happen to
    look steady states a finer resolution, and one whose look unsteady a coarser, but a slowdown of what each states is
    found in 95 % all the same.

    Three things follow. A slowdown of d passes, with a bound below it, in 1 %: d + e + r < d means e < -r. What did
    not change passes in 95 %: e + r < d. It is called slower in 1 %: e > r. A margin above r asks for more before
    anything is called slower, so that a slowdown of d is then found less often; that it passes in 1 % still holds.

    Of bounds that lie unequally far from the estimate the further counts.
    """
    reach = math.log(max(change.estimate_ratio / change.lower_ratio, change.upper_ratio / change.estimate_ratio))
    is_normal, normal = n_sessions < MIN_SESSIONS, NormalDist().inv_cdf
    sure, likely = (normal(each) if is_normal else t_quantile(each, n_sessions - 1) for each in (CONFIDENCE, POWER))
    return math.expm1(reach * (1.0 + likely / sure))


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
        """What the verdict names: the slowdown that it rules out, or the one that would have been found."""
        if self.passes_by_share:
            return self.share_ratio
        is_ruled_out = self.change.upper_ratio - 1.0 < self.passed_ratio
        return self.passed_ratio if is_ruled_out else max(self.allowed.margin_ratio, self.resolution_ratio)
