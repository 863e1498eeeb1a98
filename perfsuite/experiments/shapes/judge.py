"""The judge of shapes: a verdict for each property and shape, made once, from then on a fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from perfsuite.errors import ShapeCrashError
from perfsuite.expectation.shapes.floor import ShapeCeilings, ShapeForecasts
from perfsuite.experiments.shapes.basis import Basis, verdict_of
from perfsuite.experiments.shapes.calibrated import judge_calibrated, judge_ceiling
from perfsuite.experiments.shapes.correct import judge_correct
from perfsuite.experiments.shapes.growth import judge_growth, judge_padding
from perfsuite.experiments.shapes.measurements import Measurements
from perfsuite.experiments.shapes.shape_design import DEFAULT, ShapeDesign
from perfsuite.experiments.shapes.shape_property import WRONG, ShapeProperty, ShapeVerdict
from perfsuite.measure.shapes.meter import ShapeMeters
from perfsuite.records.outcome import Outcome
from perfsuite.workload.shapes.shape_case import ShapeCase

_JUDGES: Mapping[ShapeProperty, Callable[[Basis, ShapeCase], ShapeVerdict]] = {
    ShapeProperty.CORRECT: judge_correct,
    ShapeProperty.PADDING: judge_padding,
    ShapeProperty.GROWTH: judge_growth,
    ShapeProperty.CEILING: judge_ceiling,
    ShapeProperty.CALIBRATED: judge_calibrated,
}

#: What may be slower than its padded or grown shape by: far beyond what layouts and neighbours make of equal work.
MARGIN_RATIO = 0.25


class ShapeJudge:
    """Judges the shapes of one subject; equal questions get the same answer all session.

    How a failure is confirmed, and what the chance of a false one is: `perfsuite.experiments.shapes.confirmation`.
    """

    def __init__(
        self,
        meters: ShapeMeters,
        *,
        margin_ratio: float = MARGIN_RATIO,
        design: ShapeDesign = DEFAULT,
        ceilings: ShapeCeilings | None = None,
        forecasts: ShapeForecasts | None = None,
    ) -> None:
        if not 0.0 <= margin_ratio < float("inf"):
            raise ValueError(f"margin_ratio is {margin_ratio}, expected a finite ratio of 0 or more")
        self._basis = Basis(
            screen=Measurements(meters.resident()),
            meters=meters,
            design=design,
            margin_ratio=margin_ratio,
            ceilings=ceilings,
            forecasts=forecasts,
        )
        self._verdicts: dict[tuple[ShapeProperty, str], ShapeVerdict] = {}
        #: Of the cases that crash when computed alone, how.
        self._crashes: dict[str, str] = {}

    @property
    def margin_ratio(self) -> float:
        return self._basis.margin_ratio

    @property
    def fingerprint(self) -> dict[str, str]:
        return dict(self._basis.meters.resident().description.fingerprint)

    @property
    def verdicts(self) -> tuple[ShapeVerdict, ...]:
        return tuple(self._verdicts.values())

    def judge(self, property: ShapeProperty, case: ShapeCase) -> ShapeVerdict:
        """Judge one property at one shape; `PerfsuiteError` where the subject cannot run at all."""
        key = (property, case.case_id)
        if key not in self._verdicts:
            self._verdicts[key] = self._judged(property, case)
        return self._verdicts[key]

    def _judged(self, property: ShapeProperty, case: ShapeCase) -> ShapeVerdict:
        problem = self._basis.screen.problem(case)
        if problem is not None:
            return verdict_of(property, case, Outcome.INVALID, problem)
        if case.case_id in self._crashes:
            return verdict_of(property, case, WRONG, self._crashes[case.case_id])
        try:
            return _JUDGES[property](self._basis, case)
        except ShapeCrashError as crash:
            return self._after_crash(property, case, crash)

    def _after_crash(self, property: ShapeProperty, case: ShapeCase, crash: ShapeCrashError) -> ShapeVerdict:
        """Judge once more, all in fresh processes: a crash of theirs is the verdict."""
        try:
            with self._basis.meters.fresh() as meter:
                verdict = _JUDGES[property](replace(self._basis, screen=Measurements(meter)), case)
        except ShapeCrashError as again:
            reason = f"{again}; in a fresh process as well"
            if again.case_id != case.case_id:  # what it is held against is a shape of its own, which CORRECT may draw
                return verdict_of(property, case, Outcome.INVALID, f"nothing to compare with: {reason}")
            if property is ShapeProperty.CORRECT:  # nothing but the case itself was computed
                self._crashes[case.case_id] = reason
            return verdict_of(property, case, WRONG, reason)
        return replace(verdict, reason=f"{verdict.reason}; a process died before and no fresh one did ({crash})")
