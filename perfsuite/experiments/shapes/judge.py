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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from perfsuite.errors import ShapeCrashError
from perfsuite.expectation.shapes.floor import ShapeCeilings, ShapeForecasts, dimension_steps, floor_ns, padded_shape
from perfsuite.experiments.shapes.basis import Answer, Basis, Measurements, RatioBounds, told_difference, verdict_of
from perfsuite.experiments.shapes.shape_property import DEFAULT, WRONG, ShapeDesign, ShapeProperty, ShapeVerdict
from perfsuite.measure.shapes.meter import Deviation, ShapeMeters
from perfsuite.records.case import Expectation
from perfsuite.records.outcome import Outcome
from perfsuite.units import format_ns
from perfsuite.verdict.significance import paired_ratio
from perfsuite.workload.shapes.operation_shape import block_values
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject


def judge_ceiling(basis: Basis, case: ShapeCase) -> ShapeVerdict:
    """Judge whether the fastest sample is below the floor by more than the ceilings' own spread.

    Floor over fastest is the efficiency; it may exceed 1 by the spread and no further. Whatever was measured of the
    shape in this process counts, for whichever property it was measured.
    """
    ceilings = basis.ceilings
    if ceilings is None:
        reason = "the device's ceilings are not known, so there is no floor"
        return verdict_of(ShapeProperty.CEILING, case, Outcome.INVALID, reason)
    floor = floor_ns(case.shape, ceilings)

    def measure(bench: Measurements) -> RatioBounds:
        ratio = floor / bench.fastest_ns(case, basis.design.n_pairs)
        return RatioBounds(ratio=ratio, lower_ratio=ratio, upper_ratio=ratio)

    answer = basis.answer(measure, limit_ratio=1.0 / (1.0 - ceilings.spread_ratio))
    ratio = answer.bounds.ratio
    seen = f"the fastest sample is {format_ns(floor / ratio)}, {ratio:.2g} of what the ceilings allow"
    limit = f" (floor {format_ns(floor)}, their spread {ceilings.spread_ratio * 100:g} %)"
    outcome, why = Outcome.PASS, ""
    if answer.is_confirmed:
        outcome, why = Outcome.IMPOSSIBLE, ": measured wrongly, or not all computed"
    return verdict_of(ShapeProperty.CEILING, case, outcome, f"{seen}{limit}{why}{answer.history}", answer.bounds)


def judge_calibrated(basis: Basis, case: ShapeCase) -> ShapeVerdict:
    """Judge whether an operator is slower than the limit of its forecast."""
    if case.subject is not Subject.GGML_CPU:
        reason = f"calibrations are of {Subject.GGML_CPU.value}, not of {case.subject.value}"
        return verdict_of(ShapeProperty.CALIBRATED, case, Outcome.INVALID, reason)
    if basis.forecasts is None:
        reason = "the device has no calibration; run 'perfsuite calibrate'"
        return verdict_of(ShapeProperty.CALIBRATED, case, Outcome.INVALID, reason)
    return _judged(basis, case, basis.forecasts.expectation(case.shape))


def _judged(basis: Basis, case: ShapeCase, expectation: Expectation) -> ShapeVerdict:
    expected_ns, upper_ns = expectation.expected_ns, expectation.upper_ns
    assert expected_ns is not None  # a calibration gives both
    assert upper_ns is not None
    design = basis.design

    def measure(bench: Measurements) -> RatioBounds:
        samples_ns = bench.samples_ns(case, design.n_pairs)
        constant_ns = [expected_ns] * len(samples_ns)
        found = paired_ratio(constant_ns, samples_ns, confidence=1.0 - design.alpha)
        return RatioBounds(ratio=found.median_ratio, lower_ratio=found.lower_ratio, upper_ratio=found.upper_ratio)

    if expectation.limit_ns is None:
        bounds = measure(basis.screen)
        reason = f"a forecast of {format_ns(expected_ns)} is too short to bound an operator that stands alone"
        return verdict_of(ShapeProperty.CALIBRATED, case, Outcome.INVALID, reason, bounds)
    answer = basis.answer(measure, limit_ratio=expectation.limit_ns / expected_ns)
    told = f"expected {format_ns(expected_ns)}, at most {format_ns(upper_ns)}, limit {format_ns(expectation.limit_ns)}"
    seen = f"{format_ns(answer.bounds.ratio * expected_ns)}: {told}{answer.history}"
    outcome = Outcome.SLOW if answer.is_confirmed else Outcome.PASS
    return verdict_of(ShapeProperty.CALIBRATED, case, outcome, seen, answer.bounds)


def judge_padding(basis: Basis, case: ShapeCase) -> ShapeVerdict:
    """Judge whether a shape is slower than its padded shape by more than the margin.

    A kernel that computes whole tiles does the padded shape's work, and ggml's operators could; an edge that is handled
    so badly that the larger shape is faster is a fault of the kernel. A padded shape holds by definition.
    """
    padded = replace(case, shape=padded_shape(case))
    if padded == case:
        return verdict_of(ShapeProperty.PADDING, case, Outcome.PASS, "it is its own padded shape; nothing was measured")
    if (problem := basis.screen.problem(padded)) is not None:
        reason = f"its padded shape, {told_difference(padded, case)}: {problem}"
        return verdict_of(ShapeProperty.PADDING, case, Outcome.INVALID, reason)
    return _verdict(basis, ShapeProperty.PADDING, case, padded, basis.slowdown(padded, case))


def judge_growth(basis: Basis, case: ShapeCase) -> ShapeVerdict:
    """Judge whether the cost falls by more than the margin where a dimension grows.

    The dimensions are judged in turn, up to the first that fails; where none does, the verdict tells of the one that
    came nearest. A grown shape that cannot be computed bounds nothing.
    """
    answers: list[tuple[ShapeCase, Answer]] = []
    problems: list[str] = []
    for grown in grown_cases(case):
        if (problem := basis.screen.problem(grown)) is not None:
            problems.append(f"grown to {told_difference(grown, case)}: {problem}")
            continue
        answer = basis.slowdown(grown, case)
        if answer.is_confirmed:
            return _verdict(basis, ShapeProperty.GROWTH, case, grown, answer)
        answers.append((grown, answer))
    if not answers:
        return verdict_of(ShapeProperty.GROWTH, case, Outcome.INVALID, "; ".join(problems))
    return _verdict(basis, ShapeProperty.GROWTH, case, *max(answers, key=lambda each: each[1].bounds.ratio))


def grown_cases(case: ShapeCase) -> Iterator[ShapeCase]:
    """Yield the case grown by one step in each dimension; the inner one by whole blocks of the stored type."""
    for name, step in dimension_steps(case).items():
        inner = name == case.operation.inner_dimension
        step = math.lcm(step, block_values(case.shape.type)) if inner else step
        yield replace(case, shape=case.shape.with_sizes(**{name: case.shape.of(name) + step}))


def _verdict(
    basis: Basis, property: ShapeProperty, case: ShapeCase, against: ShapeCase, answer: Answer
) -> ShapeVerdict:
    how = "padded" if property is ShapeProperty.PADDING else "grown"
    told = f"{answer.bounds.told} against {how} {told_difference(against, case)}, margin {basis.margin_ratio * 100:g} %"
    outcome = Outcome.REGRESSED if answer.is_confirmed else Outcome.PASS
    return verdict_of(property, case, outcome, f"{told}{answer.history}", answer.bounds, against)


def judge_correct(basis: Basis, case: ShapeCase) -> ShapeVerdict:
    """Judge whether the output is right."""
    deviation = basis.screen.deviation(case)
    if deviation.is_correct:
        return _deviating(case, deviation, Outcome.PASS, "computes correctly")
    for number in range(1, basis.design.n_confirmations + 1):
        with basis.meters.fresh() as meter:
            fresh = Measurements(meter).deviation(case)
        if not fresh.is_correct:
            return _deviating(case, fresh, WRONG, "computes wrongly", f"; in fresh process {number}")
    others = f"; right in {basis.design.n_confirmations} fresh ones: spoilt by what was computed before, or a rare race"
    return _deviating(case, deviation, Outcome.INVALID, "computed wrongly in one process", others)


def _deviating(case: ShapeCase, deviation: Deviation, outcome: Outcome, what: str, end: str = "") -> ShapeVerdict:
    seen = f"{what}: error norm {deviation.error_norm:.2g}, tolerance {deviation.tolerance:.2g}{end}"
    ratio = deviation.error_norm / deviation.tolerance  # none of an output that is not finite
    bounds = RatioBounds(ratio=ratio, lower_ratio=ratio, upper_ratio=ratio) if math.isfinite(ratio) else None
    return verdict_of(ShapeProperty.CORRECT, case, outcome, seen, bounds)


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

    How a failure is confirmed, and what the chance of a false one is: `perfsuite.experiments.shapes.basis`.
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
