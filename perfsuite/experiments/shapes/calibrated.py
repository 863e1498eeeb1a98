"""CEILING and CALIBRATED: a shape is no faster than the ceilings, and no slower than the calibration says it may be.

The calibration times an operator within a long graph, over weights that come from memory. A shape's weights may come
from a cache, so only the upper bound is held; and a forecast that is short against the start of a graph bounds nothing.
Samples of one side alone are skewed, so the bounds are those of a median by order statistics.
"""

from __future__ import annotations

from perfsuite.expectation.forecast import Expectation
from perfsuite.expectation.shapes.floor import floor_ns
from perfsuite.experiments.shapes.basis import Basis, verdict_of
from perfsuite.experiments.shapes.confirmation import RatioBounds
from perfsuite.experiments.shapes.measurements import Measurements
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.records.outcome import Outcome
from perfsuite.units import format_ns
from perfsuite.verdict.paired import paired_ratio
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
