"""What the verdict on a shape rests on: where it is measured, how much, and what is expected of the device.

A ratio that is beyond its limit in the process that stays, and again in fresh ones: what makes a verdict a fact.

Noise flags a process with a chance of alpha, and a layout of buffers that is drawn once is a true difference for as
long as the process lives. So confirmations are not more pairs but more processes, each judged by its own pairs alone:
where one draws a bad layout with chance p, all flag with at most ``(p + alpha) ** (1 + n_confirmations)``. See
docs/shapes.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from statistics import median

from perfsuite.expectation.shapes.floor import ShapeCeilings, ShapeForecasts
from perfsuite.experiments.shapes.shape_property import ShapeDesign, ShapeProperty, ShapeVerdict
from perfsuite.measure.shapes.meter import PairSamples, ShapeMeter, ShapeMeters
from perfsuite.records.outcome import Outcome
from perfsuite.units import format_change
from perfsuite.verdict.pairs import compare_pairs
from perfsuite.workload.shapes.shape_case import ShapeCase


class Measurements:
    """Measures with one meter; what was measured before is given again."""

    def __init__(self, meter: ShapeMeter) -> None:
        self._meter = meter
        #: Why a case cannot be computed, None where it can; and how far its output is from NumPy's.
        self.problem = cache(meter.problem)
        self.deviation = cache(meter.verify)
        self._samples_ns: dict[str, tuple[int, ...]] = {}
        self._pairs: dict[tuple[str, str], PairSamples] = {}
        self._fastest_ns: dict[str, int] = {}

    def samples_ns(self, case: ShapeCase, n_samples: int) -> tuple[int, ...]:
        """Return `n_samples` or more samples of the case alone."""
        known = self._samples_ns.get(case.case_id, ())
        if len(known) < n_samples:
            known += self._meter.samples(case, n_samples - len(known))
            self._samples_ns[case.case_id] = known
            self._note(case, known)
        return known

    def pairs(self, old: ShapeCase, new: ShapeCase, n_pairs: int) -> PairSamples:
        key = (old.case_id, new.case_id)
        if key not in self._pairs or len(self._pairs[key].old_ns) < n_pairs:
            pairs = self._meter.pairs(old, new, n_pairs)
            self._pairs[key] = pairs
            self._note(old, pairs.old_ns)
            self._note(new, pairs.new_ns)
        return self._pairs[key]

    def fastest_ns(self, case: ShapeCase, n_samples: int) -> int:
        """Return the fastest sample of the case, whatever it was measured for; measured where nothing was."""
        if case.case_id not in self._fastest_ns:
            self.samples_ns(case, n_samples)
        return self._fastest_ns[case.case_id]

    def _note(self, case: ShapeCase, samples_ns: tuple[int, ...]) -> None:
        known = self._fastest_ns.get(case.case_id)
        self._fastest_ns[case.case_id] = min(samples_ns if known is None else (known, *samples_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioBounds:
    """A ratio with one-sided bounds, as one process or several saw it."""

    ratio: float
    lower_ratio: float
    upper_ratio: float

    @property
    def told(self) -> str:
        """The ratio as a change, and its bounds."""
        bounds = (self.lower_ratio, self.upper_ratio)
        if not all(math.isfinite(each) for each in bounds):
            return format_change(self.ratio)
        return f"{format_change(self.ratio)} ({' to '.join(map(format_change, bounds))})"


Measure = Callable[[Measurements], RatioBounds]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the screen, and where it flagged the fresh processes, saw of one ratio."""

    screened: RatioBounds
    #: Of the fresh processes in their order, up to the first that did not flag.
    confirming: tuple[RatioBounds, ...]
    #: Whether the screen and each fresh process were beyond the limit.
    is_confirmed: bool

    @property
    def bounds(self) -> RatioBounds:
        """What to tell: of a confirmed ratio the middle of the fresh processes, between the widest of their bounds.

        The screen selected the shape, which biases what it saw, so it counts only where nothing was measured after it.
        For a ratio that was not confirmed it is the process that did not.
        """
        if not self.is_confirmed:
            return self.confirming[-1] if self.confirming else self.screened
        return RatioBounds(
            ratio=median(each.ratio for each in self.confirming),
            lower_ratio=min(each.lower_ratio for each in self.confirming),
            upper_ratio=max(each.upper_ratio for each in self.confirming),
        )

    @property
    def history(self) -> str:
        """How the answer was come to, for the end of a reason; empty where the screen sufficed."""
        n_fresh = len(self.confirming)
        if self.is_confirmed:
            return f"; in {n_fresh} fresh {'process' if n_fresh == 1 else 'processes'}"
        if not n_fresh:
            return ""
        return f"; the screen saw {self.screened.told}, which fresh process {n_fresh} did not confirm"


def confirmed_answer(
    measure: Measure, screen: Measurements, meters: ShapeMeters, *, limit_ratio: float, design: ShapeDesign
) -> Answer:
    """Measure a ratio in the process that stays and, where its lower bound is beyond the limit, in fresh ones.

    Fresh processes are started one after the other, up to the first that does not flag.
    """
    screened = measure(screen)
    confirming: list[RatioBounds] = []
    is_beyond = screened.lower_ratio > limit_ratio
    while is_beyond and len(confirming) < design.n_confirmations:
        with meters.fresh() as meter:
            confirming.append(measure(Measurements(meter)))
        is_beyond = confirming[-1].lower_ratio > limit_ratio
    return Answer(screened=screened, confirming=tuple(confirming), is_confirmed=is_beyond)


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
    """Return a verdict with the bounds of its ratio, and the case that it was compared with, where it has them."""
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
