"""Timing several kinds of work in turn, each in all the ways in which it can be done."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from perfsuite.errors import OpenClError
from perfsuite.expectation.roofline.ceiling import Rate

#: Each kind of work has at least this many rounds, whatever the budget.
MIN_ROUNDS = 5
#: Launches of each way in a round; the first may find the caches full of another's work.
REPETITIONS = 2
#: A launch lasts this share of the budget, this time, or one pass, whichever is longest: long against its own cost.
_LAUNCH_SHARE = 1 / 2000
_LEAST_LAUNCH_NS = 200_000
#: Passes grow by no more than this from one trial to the next, and to no more than this.
_MOST_GROWTH = 64
_MOST_PASSES = 1 << 30

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to do a kind of work."""

    #: Bytes or FLOPs of one pass.
    amount: float
    #: Runs this many passes in one launch and returns its duration on the device's clock, in ns; may raise OpenClError.
    launch_ns: Callable[[int], int]

    def rate_per_s(self, passes: int) -> float:
        """Return the rate of one launch of so many passes, 0 where the device's clock did not move."""
        duration_ns = self.launch_ns(passes)
        return self.amount * passes / duration_ns * 1e9 if duration_ns > 0 else 0.0


#: A way with the passes of a launch.
_Contender = tuple[Way, int]


def rates_in_rounds(
    kinds: Mapping[Kind, Sequence[Way]], *, budget_ns: int, clock_ns: Callable[[], int] = time.monotonic_ns
) -> dict[Kind, Rate | str]:
    """Return the rate of each kind of work by its fastest way, or why it has none.

    A round runs every way of every kind `REPETITIONS` times, so that a disturbance does not hit one kind alone. There
    are as many rounds as the budget has room for, and `MIN_ROUNDS` at least.
    """
    deadline_ns = clock_ns() + budget_ns
    target_ns = launch_target_ns(budget_ns)
    trials = {kind: _contenders(ways, target_ns) for kind, ways in kinds.items()}
    bests: dict[Kind, list[float]] = {kind: [] for kind, (contenders, _) in trials.items() if contenders}
    n_rounds, round_ns = 0, 0
    while n_rounds < MIN_ROUNDS or clock_ns() + round_ns < deadline_ns:
        began_ns = clock_ns()
        for kind, rates in bests.items():
            rates.append(_best_per_s(trials[kind][0]))
        n_rounds, round_ns = n_rounds + 1, clock_ns() - began_ns
        if not bests or round_ns <= 0:
            break
    return {kind: rate_of(bests.get(kind, ()), reason) for kind, (_, reason) in trials.items()}


def launch_target_ns(budget_ns: int) -> int:
    """Return how long a launch should last at least."""
    return max(_LEAST_LAUNCH_NS, round(budget_ns * _LAUNCH_SHARE))


def _contenders(ways: Sequence[Way], target_ns: int) -> tuple[tuple[_Contender, ...], str]:
    """Return the ways that can be launched, and why the last of the others cannot."""
    contenders, reason = [], "there is no way to do it"
    for way in ways:
        try:
            contenders.append((way, _passes(way, target_ns)))
        except OpenClError as error:
            reason = str(error)
    return tuple(contenders), reason


def _passes(way: Way, target_ns: int) -> int:
    """Return how many passes last long enough, tried with more and more."""
    passes = 1
    while (duration_ns := way.launch_ns(passes)) < target_ns and passes < _MOST_PASSES:
        growth = target_ns / duration_ns * 1.2 if duration_ns > 0 else _MOST_GROWTH
        passes = min(math.ceil(passes * min(max(growth, 1.5), _MOST_GROWTH)), _MOST_PASSES)
    return passes


def _best_per_s(contenders: Sequence[_Contender]) -> float:
    """Run one round of a kind; a launch that fails now counts as one that took for ever."""
    best = 0.0
    for way, passes in contenders:
        with suppress(OpenClError):
            for _ in range(REPETITIONS):
                best = max(best, way.rate_per_s(passes))
    return best


def rate_of(bests: Sequence[float], reason: str) -> Rate | str:
    """Return the rate of a kind of work by the best of each round, or why it has none."""
    measured = [best for best in bests if best > 0.0]
    if not measured:
        return "the device's clock did not move" if bests else reason
    return Rate(best_per_s=max(measured), median_per_s=median(measured), n_rounds=len(measured))
