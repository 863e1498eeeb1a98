"""CEILING: no sample of a shape is faster than the device's ceilings allow."""

from __future__ import annotations

from perfsuite.expectation.shapes.floor import efficiency_ratio, floor_ns
from perfsuite.experiments.shapes.basis import Basis, verdict_of
from perfsuite.experiments.shapes.confirmation import RatioBounds
from perfsuite.experiments.shapes.measurements import Measurements
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.records.outcome import Outcome
from perfsuite.units import format_ns
from perfsuite.workload.shapes.shape_case import ShapeCase


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
        ratio = efficiency_ratio(case.shape, ceilings, bench.fastest_ns(case, basis.design.n_pairs))
        return RatioBounds(ratio=ratio, lower_ratio=ratio, upper_ratio=ratio)

    answer = basis.answer(measure, limit_ratio=1.0 / (1.0 - ceilings.spread_ratio))
    ratio = answer.bounds.ratio
    seen = f"the fastest sample is {format_ns(floor / ratio)}, {ratio:.2g} of what the ceilings allow"
    limit = f" (floor {format_ns(floor)}, their spread {ceilings.spread_ratio * 100:g} %)"
    if answer.is_confirmed:
        wrongly = f"{seen}{limit}: measured wrongly, or not all computed{answer.history}"
        return verdict_of(ShapeProperty.CEILING, case, Outcome.IMPOSSIBLE, wrongly, answer.bounds)
    return verdict_of(ShapeProperty.CEILING, case, Outcome.PASS, f"{seen}{limit}{answer.history}", answer.bounds)
