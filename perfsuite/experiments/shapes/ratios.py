"""What a process measured of shapes, and which of its ratios are facts.

A ratio that is beyond its limit in the process that stays, and again in fresh ones: what makes a verdict a fact.

Noise flags a process with a chance of alpha, and a layout of buffers that is drawn once is a true difference for as
long as the process lives. So confirmations are not more pairs but more processes, each judged by its own pairs alone:
where one draws a bad layout with chance p, all flag with at most ``(p + alpha) ** (1 + n_confirmations)``. See
docs/shapes.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import median

from perfsuite.measure.shapes.meter import PairSamples, ShapeMeter, ShapeMeters
from perfsuite.units import format_change
from perfsuite.workload.shapes.shape_case import ShapeCase


class Measurements:
    """Measures with one meter; what was measured before is given again."""

    def __init__(self, meter: ShapeMeter) -> None:
        self._meter = meter
        #: Why a case cannot be computed, None where it can; and how far its output is from NumPy's.
        self.problem = cache(meter.problem)
        self.deviation = cache(meter.verify)
        self._samples_ns: dict[ShapeCase, tuple[int, ...]] = {}
        self._pairs: dict[tuple[ShapeCase, ShapeCase], PairSamples] = {}

    def samples_ns(self, case: ShapeCase, n_samples: int) -> tuple[int, ...]:
        """Return `n_samples` or more samples of the case alone."""
        known = self._samples_ns.get(case, ())
        if len(known) < n_samples:
            known = self._samples_ns[case] = known + self._meter.samples(case, n_samples - len(known))
        return known

    def pairs(self, old: ShapeCase, new: ShapeCase, n_pairs: int) -> PairSamples:
        known = self._pairs.get((old, new))
        if known is None or len(known.old_ns) < n_pairs:
            known = self._pairs[old, new] = self._meter.pairs(old, new, n_pairs)
        return known

    def fastest_ns(self, case: ShapeCase, n_samples: int) -> int:
        """Return the fastest sample of the case, whatever it was measured for; measured where nothing was."""
        known = [
            *self._samples_ns.get(case, ()),
            *(each for (old, _), pairs in self._pairs.items() if old == case for each in pairs.old_ns),
            *(each for (_, new), pairs in self._pairs.items() if new == case for each in pairs.new_ns),
        ]
        return min(known or self.samples_ns(case, n_samples))


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioBounds:
    """A ratio with one-sided bounds, as one process or several saw it."""

    ratio: float
    lower_ratio: float
    upper_ratio: float

    @property
    def text(self) -> str:
        bounds = (self.lower_ratio, self.upper_ratio)
        if not all(map(math.isfinite, bounds)):
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
        return f"; the screen saw {self.screened.text}, which fresh process {n_fresh} did not confirm"


def confirmed_answer(
    measure: Measure, screen: Measurements, meters: ShapeMeters, *, limit_ratio: float, n_confirmations: int
) -> Answer:
    """Measure a ratio in the process that stays and, where its lower bound is beyond the limit, in fresh ones.

    Fresh processes are started one after the other, up to the first that does not flag.
    """
    screened = measure(screen)
    confirming: list[RatioBounds] = []
    is_beyond = screened.lower_ratio > limit_ratio
    while is_beyond and len(confirming) < n_confirmations:
        with meters.fresh() as meter:
            confirming.append(measure(Measurements(meter)))
        is_beyond = confirming[-1].lower_ratio > limit_ratio
    return Answer(screened=screened, confirming=tuple(confirming), is_confirmed=is_beyond)
