"""The judge of shapes: a verdict for each property and shape, made once, from then on a fact.

CORRECT: what a shape's output is, at every shape, is what NumPy computes.

The first fresh process that computes wrongly as well settles it, so a race that shows now and then is not excused by a
process in which it did not. Where none does, the process that stays was spoilt, or the fault is rare: INVALID.

CEILING and CALIBRATED: a shape is no faster than the ceilings, and no slower than the calibration says it may be.

The calibration times an operator within a long graph, over weights that come from memory. A shape's weights may come
from a cache, so only the upper bound is held; and a forecast that is short against the start of a graph bounds nothing.
Samples of one side alone are skewed, so the bounds are those of a median by order statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, replace

from perfsuite.errors import ShapeCrashError
from perfsuite.expectation.shapes.floor import ShapeForecasts, dimension_steps, floor_ns, padded_shape
from perfsuite.experiments.shapes.ratios import Answer, Measure, Measurements, RatioBounds, confirmed_answer
from perfsuite.experiments.shapes.request import HUNT_BUDGETS, HuntBudget
from perfsuite.experiments.shapes.shape_property import WRONG, ShapeProperty, ShapeVerdict
from perfsuite.measure.shapes.meter import Deviation, ShapeMeters
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.outcome import Outcome
from perfsuite.units import format_ns
from perfsuite.verdict.pairs import compare_pairs
from perfsuite.verdict.significance import paired_ratio
from perfsuite.workload.shapes.operation_shape import block_values
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

#: What may be slower than its padded or grown shape by: far beyond what layouts and neighbours make of equal work.
MARGIN_RATIO = 0.25


class ShapeJudge:
    """Judges the shapes of one subject; equal questions get the same answer all session.

    How a failure is confirmed, and what the chance of a false one is: `perfsuite.experiments.shapes.ratios`.
    """

    def __init__(
        self,
        meters: ShapeMeters,
        *,
        margin_ratio: float = MARGIN_RATIO,
        budget: HuntBudget = HUNT_BUDGETS["default"],
        ceilings: Ceilings | None = None,
        ceiling_spread_ratio: float = 0.0,
        forecasts: ShapeForecasts | None = None,
    ) -> None:
        """Judge by ceilings and forecasts where the device has them; it may exceed the ceilings by their spread."""
        self.margin_ratio = margin_ratio
        self._meters, self._budget, self._forecasts = meters, budget, forecasts
        self._ceilings, self._ceiling_spread_ratio = ceilings, ceiling_spread_ratio
        self._screen = Measurements(meters.resident())
        self._verdicts: dict[tuple[ShapeProperty, str], ShapeVerdict] = {}
        #: Of the cases that crash when computed alone, how.
        self._crashes: dict[str, str] = {}

    @property
    def fingerprint(self) -> dict[str, str]:
        return dict(self._meters.resident().description.fingerprint)

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
        problem = self._screen.problem(case)
        if problem is not None:
            return _verdict(property, case, Outcome.INVALID, problem)
        if case.case_id in self._crashes:
            return _verdict(property, case, WRONG, self._crashes[case.case_id])
        try:
            return _JUDGES[property](self, case, self._screen)
        except ShapeCrashError as crash:
            return self._after_crash(property, case, crash)

    def _after_crash(self, property: ShapeProperty, case: ShapeCase, crash: ShapeCrashError) -> ShapeVerdict:
        """Judge once more, all in fresh processes: a crash of theirs is the verdict."""
        try:
            with self._meters.fresh() as meter:
                verdict = _JUDGES[property](self, case, Measurements(meter))
        except ShapeCrashError as again:
            reason = f"{again}; in a fresh process as well"
            if again.case_id != case.case_id:  # what it is held against is a shape of its own, which CORRECT may draw
                return _verdict(property, case, Outcome.INVALID, f"nothing to compare with: {reason}")
            if property is ShapeProperty.CORRECT:  # nothing but the case itself was computed
                self._crashes[case.case_id] = reason
            return _verdict(property, case, WRONG, reason)
        return replace(verdict, reason=f"{verdict.reason}; a process died before and no fresh one did ({crash})")

    def _correct(self, case: ShapeCase, screen: Measurements) -> ShapeVerdict:
        deviation = screen.deviation(case)
        if deviation.is_correct:
            return _deviating(case, deviation, Outcome.PASS, "computes correctly")
        n_fresh = self._budget.n_confirmations
        for number in range(1, n_fresh + 1):
            with self._meters.fresh() as meter:
                fresh = meter.verify(case)
            if not fresh.is_correct:
                return _deviating(case, fresh, WRONG, "computes wrongly", f"; in fresh process {number}")
        others = f"; right in {n_fresh} fresh ones: spoilt by what was computed before, or a rare race"
        return _deviating(case, deviation, Outcome.INVALID, "computed wrongly in one process", others)

    def _padding(self, case: ShapeCase, screen: Measurements) -> ShapeVerdict:
        """Judge whether a shape is slower than its padded shape by more than the margin.

        A kernel that computes whole tiles does the padded shape's work, and ggml's operators could; an edge that is
        handled so badly that the larger shape is faster is a fault of the kernel. A padded shape holds by definition.
        """
        padded = replace(case, shape=padded_shape(case))
        if padded == case:
            reason = "it is its own padded shape; nothing was measured"
            return _verdict(ShapeProperty.PADDING, case, Outcome.PASS, reason)
        if (problem := screen.problem(padded)) is not None:
            reason = f"its padded shape, {_difference(padded, case)}: {problem}"
            return _verdict(ShapeProperty.PADDING, case, Outcome.INVALID, reason)
        return self._compared(ShapeProperty.PADDING, case, padded, self._slowdown(padded, case, screen))

    def _growth(self, case: ShapeCase, screen: Measurements) -> ShapeVerdict:
        """Judge whether the cost falls by more than the margin where a dimension grows.

        The dimensions are judged in turn, up to the first that fails; where none does, the verdict tells of the one
        that came nearest. A grown shape that cannot be computed bounds nothing.
        """
        answers: list[tuple[ShapeCase, Answer]] = []
        problems: list[str] = []
        for grown in _grown_cases(case):
            if (problem := screen.problem(grown)) is not None:
                problems.append(f"grown to {_difference(grown, case)}: {problem}")
                continue
            answers.append((grown, self._slowdown(grown, case, screen)))
            if answers[-1][1].is_confirmed:
                return self._compared(ShapeProperty.GROWTH, case, *answers[-1])
        if not answers:
            return _verdict(ShapeProperty.GROWTH, case, Outcome.INVALID, "; ".join(problems))
        return self._compared(ShapeProperty.GROWTH, case, *max(answers, key=lambda each: each[1].bounds.ratio))

    def _ceiling(self, case: ShapeCase, screen: Measurements) -> ShapeVerdict:
        """Judge whether the fastest sample is below the floor by more than the ceilings' own spread.

        Floor over fastest is the efficiency; it may exceed 1 by the spread and no further. Whatever was measured of the
        shape in this process counts, for whichever property it was measured.
        """
        if self._ceilings is None:
            reason = "the device's ceilings are not known, so there is no floor"
            return _verdict(ShapeProperty.CEILING, case, Outcome.INVALID, reason)
        floor, spread_ratio = floor_ns(case.shape, self._ceilings), self._ceiling_spread_ratio

        def measure(process: Measurements) -> RatioBounds:
            ratio = floor / process.fastest_ns(case, self._budget.n_pairs)
            return RatioBounds(ratio=ratio, lower_ratio=ratio, upper_ratio=ratio)

        answer = self._answer(measure, screen, limit_ratio=1.0 / (1.0 - spread_ratio))
        ratio = answer.bounds.ratio
        seen = f"the fastest sample is {format_ns(floor / ratio)}, {ratio:.2g} of what the ceilings allow"
        limit = f" (floor {format_ns(floor)}, their spread {spread_ratio * 100:g} %)"
        outcome, why = Outcome.PASS, ""
        if answer.is_confirmed:
            outcome, why = Outcome.IMPOSSIBLE, ": measured wrongly, or not all computed"
        return _verdict(ShapeProperty.CEILING, case, outcome, f"{seen}{limit}{why}{answer.history}", answer.bounds)

    def _calibrated(self, case: ShapeCase, screen: Measurements) -> ShapeVerdict:
        if case.subject is not Subject.GGML_CPU:
            reason = f"calibrations are of {Subject.GGML_CPU.value}, not of {case.subject.value}"
            return _verdict(ShapeProperty.CALIBRATED, case, Outcome.INVALID, reason)
        if self._forecasts is None:
            reason = "the device has no calibration; run 'perfsuite calibrate'"
            return _verdict(ShapeProperty.CALIBRATED, case, Outcome.INVALID, reason)
        expectation = self._forecasts.expectation(case.shape)
        expected_ns, upper_ns = expectation.expected_ns, expectation.upper_ns
        assert expected_ns is not None  # a calibration gives both
        assert upper_ns is not None

        def measure(process: Measurements) -> RatioBounds:
            samples_ns = process.samples_ns(case, self._budget.n_pairs)
            found = paired_ratio([expected_ns] * len(samples_ns), samples_ns, confidence=1.0 - self._budget.alpha)
            return RatioBounds(ratio=found.median_ratio, lower_ratio=found.lower_ratio, upper_ratio=found.upper_ratio)

        if expectation.limit_ns is None:
            reason = f"a forecast of {format_ns(expected_ns)} is too short to bound an operator that stands alone"
            return _verdict(ShapeProperty.CALIBRATED, case, Outcome.INVALID, reason, measure(screen))
        answer = self._answer(measure, screen, limit_ratio=expectation.limit_ns / expected_ns)
        limits = f"at most {format_ns(upper_ns)}, limit {format_ns(expectation.limit_ns)}"
        seen = f"{format_ns(answer.bounds.ratio * expected_ns)}: expected {format_ns(expected_ns)}, {limits}"
        outcome = Outcome.SLOW if answer.is_confirmed else Outcome.PASS
        return _verdict(ShapeProperty.CALIBRATED, case, outcome, f"{seen}{answer.history}", answer.bounds)

    def _slowdown(self, old: ShapeCase, new: ShapeCase, screen: Measurements) -> Answer:
        """Measure how much slower a case is than another, in pairs, against the margin."""

        def measure(process: Measurements) -> RatioBounds:
            pairs = process.pairs(old, new, self._budget.n_pairs)
            found = compare_pairs(pairs.old_ns, pairs.new_ns, alpha=self._budget.alpha)
            return RatioBounds(ratio=found.estimate_ratio, lower_ratio=found.lower_ratio, upper_ratio=found.upper_ratio)

        return self._answer(measure, screen, limit_ratio=1.0 + self.margin_ratio)

    def _answer(self, measure: Measure, screen: Measurements, *, limit_ratio: float) -> Answer:
        n_fresh = self._budget.n_confirmations
        return confirmed_answer(measure, screen, self._meters, limit_ratio=limit_ratio, n_confirmations=n_fresh)

    def _compared(self, property: ShapeProperty, case: ShapeCase, against: ShapeCase, answer: Answer) -> ShapeVerdict:
        how = "padded" if property is ShapeProperty.PADDING else "grown"
        seen = f"{answer.bounds.text} against {how} {_difference(against, case)}, margin {self.margin_ratio * 100:g} %"
        outcome = Outcome.REGRESSED if answer.is_confirmed else Outcome.PASS
        verdict = _verdict(property, case, outcome, f"{seen}{answer.history}", answer.bounds)
        return replace(verdict, against_id=against.case_id)


_JUDGES = {
    ShapeProperty.CORRECT: ShapeJudge._correct,
    ShapeProperty.PADDING: ShapeJudge._padding,
    ShapeProperty.GROWTH: ShapeJudge._growth,
    ShapeProperty.CEILING: ShapeJudge._ceiling,
    ShapeProperty.CALIBRATED: ShapeJudge._calibrated,
}


def _grown_cases(case: ShapeCase) -> Iterator[ShapeCase]:
    """Yield the case grown by one step in each dimension; the inner one by whole blocks of the stored type."""
    for name, step in dimension_steps(case).items():
        if name == case.operation.inner_dimension:
            step = math.lcm(step, block_values(case.shape.type))
        yield replace(case, shape=case.shape.with_sizes(**{name: case.shape.of(name) + step}))


def _difference(old: ShapeCase, new: ShapeCase) -> str:
    """Name the sizes in which two shapes differ, as the old one has them, such as ``n64-k64``."""
    sizes = zip(old.operation.dimensions, old.shape.sizes, new.shape.sizes, strict=True)
    return "-".join(f"{name}{size}" for name, size, other in sizes if size != other)


def _deviating(case: ShapeCase, deviation: Deviation, outcome: Outcome, what: str, end: str = "") -> ShapeVerdict:
    seen = f"{what}: error norm {deviation.error_norm:.2g}, tolerance {deviation.tolerance:.2g}{end}"
    ratio = deviation.error_norm / deviation.tolerance  # none of an output that is not finite
    bounds = RatioBounds(ratio=ratio, lower_ratio=ratio, upper_ratio=ratio) if math.isfinite(ratio) else None
    return _verdict(ShapeProperty.CORRECT, case, outcome, seen, bounds)


def _verdict(
    property: ShapeProperty, case: ShapeCase, outcome: Outcome, reason: str, bounds: RatioBounds | None = None
) -> ShapeVerdict:
    ratios = {} if bounds is None else asdict(bounds)
    return ShapeVerdict(property=property, case_id=case.case_id, outcome=outcome, reason=reason, **ratios)
