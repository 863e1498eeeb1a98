"""What further pairs would probably show of a case, from the interval that it has so far."""

from __future__ import annotations

import math

from perfsuite.verdict.signed_rank import PairedChange

#: How much further the bounds of a first look move in than 1/sqrt(n) says: from the extremes of 8 normal values, 1.42
#: deviations, to 0.63 deviations at 20 pairs, which is 0.44 and not 0.63 times as wide.
_EXTREMES_SHRINK = 0.7

#: A case that needs more further pairs than this to be decided is reported without how many.
_MOST_PAIRS = 200


def smallest_effect(change: PairedChange, margin: float) -> float | None:
    """Return the least estimate beyond the margin whose interval, as wide as this one, would exclude 1."""
    return max(1.0 + margin, change.estimate_ratio / change.lower_ratio) if change.lower_ratio else None


def n_more(change: PairedChange, margin: float) -> int | None:
    """Return how many further pairs would probably decide an open case; None where that is unknown or too many."""
    left = _pairs_to_decide(change, margin) - change.n_pairs
    return math.floor(left) + 1 if 0.0 <= left < _MOST_PAIRS else None


def may_be_decided(change: PairedChange, margin: float, *, first_look: int, last_look: int) -> bool:
    """Whether an open case is likely to be decided at the last look, in logarithms of ratios; looks are in pairs.

    Half-widths shrink as 1/sqrt(n), those of a first look faster: its bounds are the extremes of the pairs. The
    estimate may move either way by a third of its half-width, about one standard error at the errors of a screen: a
    case is not given up because its first pairs happened to lie badly.
    """
    if math.isinf(change.upper_ratio):
        return True
    estimate, limit = math.log(change.estimate_ratio), math.log1p(margin)
    above, below = math.log(change.upper_ratio) - estimate, estimate - math.log(change.lower_ratio)
    shrink = math.sqrt(change.n_pairs / last_look)
    if change.n_pairs <= first_look:
        shrink *= _EXTREMES_SHRINK
    passes = estimate - below / 3.0 + above * shrink < limit
    return passes or estimate + above / 3.0 > max(limit, below * shrink)


def _pairs_to_decide(change: PairedChange, margin: float) -> float:
    """Return beyond how many pairs an open case is decided, were its estimate to stay.

    The half-width of the interval, in logarithms, shrinks as 1/sqrt(n); it must fit between the estimate and no change
    where the estimate is beyond the margin, and between the estimate and the margin otherwise. Infinite where it never
    will, or is not known.
    """
    estimate, limit = math.log(change.estimate_ratio), math.log1p(margin)
    if math.isinf(change.upper_ratio) or estimate == limit:
        return math.inf
    if estimate > limit:
        return change.n_pairs * ((estimate - math.log(change.lower_ratio)) / estimate) ** 2
    return change.n_pairs * ((math.log(change.upper_ratio) - estimate) / (limit - estimate)) ** 2
