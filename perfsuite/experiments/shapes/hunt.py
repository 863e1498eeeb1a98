"""One hunt: what a Hypothesis test does with each shape that it draws, by which settings, and what came out."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hypothesis import HealthCheck, Phase, assume, event, settings, target
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError, ShapeError
from perfsuite.expectation.shapes.floor import dimension_steps
from perfsuite.experiments.shapes.request import HUNT_BUDGETS, HuntBudget
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.experiments.shapes.strategies import beside_multiple
from perfsuite.records.outcome import Outcome
from perfsuite.workload.shapes.shape_case import ShapeCase

#: Hypothesis' profile that the shipped hunts use.
PROFILE = "perfsuite-shapes"


def register_profile(budget: HuntBudget) -> None:
    """Let hunts that are imported from now on draw so many shapes.

    No deadline, for measuring takes what it takes, and no database: found shapes are kept in the baselines. Hypothesis
    would ask for several faults at once, replay by a derandomised seed in CI, and call measuring slow; all that is off.
    """
    settings.register_profile(
        PROFILE,
        max_examples=budget.n_examples,
        deadline=None,
        database=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        phases=(Phase.explicit, Phase.generate, Phase.target, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def hunt_settings() -> settings:
    """Return the settings of a hunt, with the verbosity that Hypothesis was asked for."""
    return settings(settings.get_profile(PROFILE), verbosity=settings().verbosity)


register_profile(HUNT_BUDGETS["default"])


class ShapeFailure(AssertionError):  # noqa: N818 - a finding, as an AssertionError is, and no error of the suite
    """A property does not hold at a shape."""


class Judge(Protocol):
    """Gives the verdict on a property at a shape, each time the same one."""

    @property
    def verdicts(self) -> Sequence[ShapeVerdict]:
        """All verdicts so far."""

    def judge(self, property: ShapeProperty, case: ShapeCase) -> ShapeVerdict:
        """Judge one property at one shape."""


@dataclass(kw_only=True)
class Hunt:
    """The state of a hunt, over all shapes of one Hypothesis test."""

    bound: ShapeProperty
    cases: st.SearchStrategy[ShapeCase]
    judge: Judge
    #: Until when new shapes are measured, by `time.monotonic`; while a failure shrinks there is no limit.
    until_s: float = math.inf
    #: What a reviewer accepted, with the margin: a shape that fails by no more is no finding.
    is_accepted: Callable[[ShapeVerdict], bool] = lambda verdict: False
    verdicts: dict[str, ShapeVerdict] = field(default_factory=dict)
    #: The cases among them that fail within what a reviewer accepted.
    accepted: set[str] = field(default_factory=set)
    #: Shapes that could not be judged, by reason.
    rejected: Counter[str] = field(default_factory=Counter)
    #: Examples that were drawn when the time was up.
    n_left_out: int = 0
    #: The last failing verdict: after Hypothesis has replayed it, that on the smallest shape.
    failing: ShapeVerdict | None = None
    error: PerfsuiteError | None = None
    _known: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._known = frozenset(each.case_id for each in self.judge.verdicts if each.property is self.bound)

    def example(self, data: st.DataObject) -> None:
        """Draw a shape and judge it; `ShapeFailure` where the property does not hold."""
        try:
            case = data.draw(self.cases, label="case")
        except ShapeError as error:  # nothing is within the bounds
            self.error = error
            return
        if self.error is not None or self._is_left_out(case):
            return
        try:
            verdict = self.judge.judge(self.bound, case)
        except PerfsuiteError as error:  # is no fault of the shape, so that there is nothing to shrink
            self.error = error
            return
        self.verdicts[case.case_id] = verdict
        for text in _events(case, verdict):
            event(text)
        if verdict.outcome is Outcome.INVALID:
            self.rejected[verdict.reason] += 1
            assume(False)
        if verdict.ratio is not None and 0.0 < verdict.ratio < math.inf:
            target(math.log(verdict.ratio), label="log ratio")  # of times: the worst efficiency but for padding
        if verdict.outcome.fails and self.is_accepted(verdict):
            self.accepted.add(case.case_id)
        elif verdict.outcome.fails:
            self.failing = verdict
            raise ShapeFailure(f"{case.case_id}: {verdict.reason}")

    @property
    def judged(self) -> tuple[ShapeVerdict, ...]:
        return tuple(each for each in self.verdicts.values() if each.outcome is not Outcome.INVALID)

    def _is_left_out(self, case: ShapeCase) -> bool:
        is_known = case.case_id in self._known or case.case_id in self.verdicts
        if is_known or self.failing is not None or time.monotonic() < self.until_s:
            return False
        self.n_left_out += 1
        event("not measured: the time is up")
        return True


def _events(case: ShapeCase, verdict: ShapeVerdict) -> list[str]:
    return [
        f"type {case.shape.type}",
        *([] if case.tiling is None else [f"tile {case.tiling.tile}"]),
        *(
            f"{name}: {beside_multiple(case.shape.of(name), step).value}"
            for name, step in dimension_steps(case).items()
        ),
        f"outcome {verdict.outcome.value}",
    ]
