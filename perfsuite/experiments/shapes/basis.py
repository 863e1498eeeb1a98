"""What the verdict on a shape rests on: where it is measured, how much, and what is expected of the device."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from perfsuite.expectation.shapes.floor import ShapeCeilings, ShapeForecasts
from perfsuite.experiments.shapes.confirmation import Answer, Measure, RatioBounds, confirmed_answer
from perfsuite.experiments.shapes.measurements import Measurements
from perfsuite.experiments.shapes.shape_design import ShapeDesign
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.measure.shapes.meter import PairSamples, ShapeMeters
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.signed_rank import compare_pairs
from perfsuite.workload.shapes.shape_case import ShapeCase


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What the properties are judged with."""

    screen: Measurements
    meters: ShapeMeters
    design: ShapeDesign
    #: What may be slower by; 0.25 is 25 %.
    margin_ratio: float
    #: None where the device's ceilings were not measured.
    ceilings: ShapeCeilings | None
    #: None where the device was not calibrated.
    forecasts: ShapeForecasts | None

    def answer(self, measure: Measure, *, limit_ratio: float) -> Answer:
        return confirmed_answer(measure, self.screen, self.meters, limit_ratio=limit_ratio, design=self.design)

    def slowdown(self, old: ShapeCase, new: ShapeCase) -> Answer:
        """Measure how much slower a case is than another, in pairs, against the margin."""

        def measure(bench: Measurements) -> RatioBounds:
            pairs: PairSamples = bench.pairs(old, new, self.design.n_pairs)
            found = compare_pairs(pairs.old_ns, pairs.new_ns, alpha=self.design.alpha)
            return RatioBounds(ratio=found.estimate_ratio, lower_ratio=found.lower_ratio, upper_ratio=found.upper_ratio)

        return self.answer(measure, limit_ratio=1.0 + self.margin_ratio)


def verdict_of(
    property: ShapeProperty,
    case: ShapeCase,
    outcome: Outcome,
    reason: str,
    bounds: RatioBounds | None = None,
    against: ShapeCase | None = None,
) -> ShapeVerdict:
    """Return a verdict with the bounds of its ratio, and the case that it was held against, where it has them."""
    return ShapeVerdict(
        property=property,
        case_id=case.case_id,
        outcome=outcome,
        reason=reason,
        against_id=None if against is None else against.case_id,
        **({} if bounds is None else asdict(bounds)),
    )


def told_difference(old: ShapeCase, new: ShapeCase) -> str:
    """Name the sizes in which two shapes differ, as the old one has them, such as ``n64-k64``."""
    names = old.operation.dimensions
    return "-".join(
        f"{name}{size}"
        for name, size, other in zip(names, old.shape.sizes, new.shape.sizes, strict=True)
        if size != other
    )
