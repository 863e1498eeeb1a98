"""How much a case may change before the step that it is part of changes by a share that matters.

Eight per cent of an operator that takes 1.5 us of a step of 6 ms is nothing that anybody could notice. A case passes a
change up to the larger of its own margin and a share of its step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfsuite.expectation.cases import GRAPH_PHASES, Case
from perfsuite.records.events import Phase

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

    A case takes `case_ns` before the change; `steps_ns` are prefill and decode as a whole, where they were measured.
    """
    share = step_share(case, steps_ns=steps_ns, share_ratio=share_ratio)
    return margin_ratio if share is None else max(margin_ratio, share.margin_ratio(case_ns))
