"""CORRECT: what a shape's output is, at every shape, is what NumPy computes.

The first fresh process that computes wrongly as well settles it, so a race that shows now and then is not excused by a
process in which it did not. Where none does, the process that stays was spoilt, or the fault is rare: INVALID.
"""

from __future__ import annotations

import math

from perfsuite.experiments.shapes.basis import Basis, verdict_of
from perfsuite.experiments.shapes.confirmation import RatioBounds
from perfsuite.experiments.shapes.measurements import Measurements
from perfsuite.experiments.shapes.shape_property import WRONG, ShapeProperty, ShapeVerdict
from perfsuite.measure.shapes.meter import Deviation
from perfsuite.records.outcome import Outcome
from perfsuite.workload.shapes.shape_case import ShapeCase


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
