"""How much slower the new side of pairs is, with an interval: the exact signed-rank test and what inverts it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from perfsuite.verdict.significance import Change

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedChange(Change):
    """A ratio new over old, the median of the Walsh averages; each bound and each p-value holds by itself, one-sided.

    The bounds are 0 and infinity where the pairs are too few for what is asked for.
    """

    #: The chance of pairs at least this slow, or this fast, where nothing changed.
    p_slower: float
    p_faster: float
    n_pairs: int


def compare_pairs(old_ns: Sequence[int], new_ns: Sequence[int], *, alpha: float) -> PairedChange:
    """Estimate new over old from pairs taken one beside the other.

    With d = log(new/old) of n pairs, the n (n + 1) / 2 Walsh averages are (d_i + d_j) / 2, i <= j. The estimate is
    their median. The statistic W of the signed-rank test is how many of them are above 0, so the lower bound is the
    c-th largest average, c the least count with P(W >= c) <= `alpha`: it is above 1 if and only if
    `p_slower` <= `alpha`. A tie with 0 counts against either claim, which keeps both p-values valid.

    The noise of d must be symmetric; it is where both sides are disturbed alike.

    Raises ValueError: the sides differ in length, are empty, hold what is no latency, or `alpha` is not between 0 and
    0.5.

    Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd edition, sections 3.1 to 3.3.
    """
    if not 0.0 < alpha < 0.5:
        raise ValueError(f"alpha is {alpha}, expected more than 0 and less than 0.5")
    ratios = _walsh_ratios(*_checked(old_ns, new_ns))
    tail = _upper_tail(len(old_ns))
    reach = np.flatnonzero(tail <= alpha)
    cut = int(reach[0]) if len(reach) else None
    return PairedChange(
        estimate_ratio=math.sqrt(ratios[(len(ratios) - 1) // 2] * ratios[len(ratios) // 2]),
        lower_ratio=0.0 if cut is None else float(ratios[len(ratios) - cut]),
        upper_ratio=math.inf if cut is None else float(ratios[cut - 1]),
        p_slower=float(tail[np.count_nonzero(ratios > 1.0)]),
        p_faster=float(tail[np.count_nonzero(ratios < 1.0)]),
        n_pairs=len(old_ns),
    )


def least_p(n_pairs: int) -> float:
    """Return the least p-value that `n_pairs` can give: all of them on one side, 2 to the power of -n."""
    return math.ldexp(1.0, -n_pairs)


def _checked(old_ns: Sequence[int], new_ns: Sequence[int]) -> tuple[_Floats, _Floats]:
    if len(old_ns) != len(new_ns):
        raise ValueError(f"{len(old_ns)} old and {len(new_ns)} new latencies are no pairs")
    if len(old_ns) == 0:
        raise ValueError("nothing to compare: no pairs")
    for value in (*old_ns, *new_ns):
        if not 0 < value < math.inf:
            raise ValueError(f"a latency is {value} ns, expected a finite time of more than 0")
    return np.array(old_ns, dtype=np.float64), np.array(new_ns, dtype=np.float64)


def _walsh_ratios(old_ns: _Floats, new_ns: _Floats) -> _Floats:
    """Return exp of the Walsh averages in order: sqrt(new_i new_j / (old_i old_j)), exactly 1 where products tie."""
    rows, columns = np.triu_indices(len(old_ns))
    return np.sort(np.sqrt((new_ns[rows] * new_ns[columns]) / (old_ns[rows] * old_ns[columns])))


@cache
def _upper_tail(n_pairs: int) -> _Floats:
    """Return P(W >= w) for w from 0: W is the sum of those ranks of 1 to n for which a fair coin shows heads."""
    chance = np.ones(1)
    for rank in range(1, n_pairs + 1):
        none = np.zeros(rank)
        chance = 0.5 * (np.concatenate((chance, none)) + np.concatenate((none, chance)))
    return np.minimum(np.cumsum(chance[::-1])[::-1], 1.0)


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
