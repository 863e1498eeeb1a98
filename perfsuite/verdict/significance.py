"""How much slower the new samples are than the old ones, with an interval: two-sample Hodges-Lehmann on log ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, median

from perfsuite.records.outcome import Outcome

#: Beyond this many pairs of samples the rank distribution is close enough to normal.
_EXACT_LIMIT = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A ratio new over old; the bounds hold one-sided at the confidence asked for."""

    estimate_ratio: float
    lower_ratio: float
    upper_ratio: float

    def outcome(self, margin_ratio: float, passed_ratio: float | None = None) -> Outcome:
        """Judge the change: the rule of every verdict against an older time.

        REGRESSED and IMPROVED: slower or faster for sure, and by more than the margin as estimated; PASS: surely not
        slower by `passed_ratio`, which is the margin where nothing else is said; INCONCLUSIVE: none of them.
        """
        if self.lower_ratio > 1.0 and self.estimate_ratio > 1.0 + margin_ratio:
            return Outcome.REGRESSED
        if self.upper_ratio < 1.0 and self.estimate_ratio < 1.0 / (1.0 + margin_ratio):
            return Outcome.IMPROVED
        passes = self.rules_out(margin_ratio if passed_ratio is None else passed_ratio)
        return Outcome.PASS if passes else Outcome.INCONCLUSIVE

    def rules_out(self, slowdown_ratio: float) -> bool:
        """Whether it is surely not slower by so much."""
        return self.upper_ratio < 1.0 + slowdown_ratio


def compare_samples(
    old_ns: Sequence[float], new_ns: Sequence[float], *, session_spread_ratio: float, confidence: float = 0.99
) -> Change:
    """Estimate new over old.

    The estimate is the median of all log ratios new/old (Hodges-Lehmann); the bounds are order statistics of these by
    the exact Mann-Whitney distribution, widened by `session_spread_ratio`, which samples of one session cannot show:
    sessions differ by it, and samples by chance, independently of each other, so that the squares of both reaches add
    up. Where samples are too few for the confidence, the bounds are the extremes, which err more often: by chance all
    n new samples are above all m old ones with the probability 1/C(n+m, n), 5 % at 3 and 3, 1.4 % at 4 and 4.

    *Source*: Hollander and Wolfe, Nonparametric Statistical Methods, section 4.3 (interval of Moses).

    Raises ValueError: a side is empty, or holds a time that is not positive.
    """
    if not old_ns or not new_ns:
        raise ValueError(f"nothing to compare: {len(old_ns)} old and {len(new_ns)} new samples")
    if min(*old_ns, *new_ns) <= 0:
        raise ValueError(f"a latency is not positive: {min(*old_ns, *new_ns)} ns")
    ratios = sorted(math.log(new) - math.log(old) for old in old_ns for new in new_ns)
    place = _bound_place(len(old_ns), len(new_ns), 1.0 - confidence)
    spread = math.log1p(session_spread_ratio)
    estimate = median(ratios)
    return Change(
        estimate_ratio=math.exp(estimate),
        lower_ratio=math.exp(estimate - math.hypot(estimate - ratios[place], spread)),
        upper_ratio=math.exp(estimate + math.hypot(ratios[len(ratios) - 1 - place] - estimate, spread)),
    )


def _bound_place(n_old: int, n_new: int, alpha: float) -> int:
    """Return which of the sorted ratios, counted from 0, is the lower bound: the largest k with P(U <= k) <= alpha.

    The ratio at place k is above the true one where at most k of all ratios are below that, and U counts these. The
    extreme, 0, is also returned where even P(U = 0) is above alpha.
    """
    n_pairs = n_old * n_new
    if n_pairs > _EXACT_LIMIT:
        deviation = math.sqrt(n_pairs * (n_old + n_new + 1) / 12.0)
        return max(0, math.floor((n_pairs - 1) / 2.0 + NormalDist().inv_cdf(alpha) * deviation))
    allowed, n_below = alpha * math.comb(n_old + n_new, n_old), 0
    for count in range((n_pairs + 1) // 2):
        n_below += _arrangements(n_old, n_new, count)
        if n_below > allowed:
            return max(0, count - 1)
    return (n_pairs - 1) // 2


@cache
def _arrangements(n_old: int, n_new: int, u: int) -> int:
    """Count the orders of two groups whose Mann-Whitney statistic is `u` (Mann and Whitney's recurrence)."""
    if u < 0:
        return 0
    if n_old == 0 or n_new == 0:
        return int(u == 0)
    return _arrangements(n_old - 1, n_new, u - n_new) + _arrangements(n_old, n_new - 1, u)
