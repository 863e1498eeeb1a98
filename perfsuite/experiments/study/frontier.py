"""The Pareto frontier of latencies and accuracies, and its knee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """One thing that is fast and accurate to some degree."""

    name: str
    latency_s: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """What nothing else beats in both, the fastest first."""

    members: tuple[TradeOff, ...]
    #: None where no member stands above the line between the ends.
    knee: TradeOff | None


def pareto_frontier(found: Sequence[TradeOff]) -> Frontier:
    """Return all that are not dominated, and the knee among them.

    One dominates another where it takes no longer and is no less accurate, and is better in one of the two. Equal ones
    do not dominate each other.

    Raises PerfsuiteError: nothing is given, or a latency is not above 0.
    """
    if not found:
        raise PerfsuiteError("frontier: nothing to compare, expected at least one latency with an accuracy")
    if slow := [each for each in found if not each.latency_s > 0.0]:
        raise PerfsuiteError(f"frontier: {slow[0].name} takes {slow[0].latency_s:g} s, expected a time above 0")
    members = tuple(
        sorted(
            (each for each in found if not any(_dominates(other, each) for other in found)),
            key=lambda each: (each.latency_s, each.name),
        )
    )
    return Frontier(members=members, knee=_knee(members))


def _dominates(one: TradeOff, other: TradeOff) -> bool:
    no_worse = one.latency_s <= other.latency_s and one.accuracy >= other.accuracy
    return no_worse and (one.latency_s, one.accuracy) != (other.latency_s, other.accuracy)


def _knee(members: Sequence[TradeOff]) -> TradeOff | None:
    """Return the member that stands furthest above the chord of the frontier, the faster of equals.

    Latency and accuracy are each scaled to 0 at one end of the frontier and 1 at the other; the chord is y = x, and
    the height above it is y - x, which ranks as the distance from it does.

    *Source*: V. Satopää et al., Finding a "Kneedle" in a Haystack, ICDCS Workshops 2011, on the points themselves,
    without smoothing.
    """
    first, last = members[0], members[-1]
    span_s, gain = last.latency_s - first.latency_s, last.accuracy - first.accuracy
    if span_s <= 0.0 or gain <= 0.0:
        return None
    heights = [
        (each.accuracy - first.accuracy) / gain - (each.latency_s - first.latency_s) / span_s for each in members
    ]
    highest = max(heights)
    return members[heights.index(highest)] if highest > 0.0 else None
