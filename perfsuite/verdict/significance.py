"""How much slower the new samples are than the old ones, with an interval: two-sample Hodges-Lehmann on log ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from statistics import NormalDist, fmean, median, stdev, variance

from perfsuite.records.outcome import Outcome
from perfsuite.units import format_count

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


#: Fewer sessions than this show too little of the spread between them.
MIN_SESSIONS = 5

CONFIDENCE = 0.99

Samples = Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Standard deviations of the logarithm of a latency, as ratios: 0.02 is 2 %; None where there are too few."""

    #: Between the samples of one session, pooled over sessions.
    within_ratio: float | None
    #: Between the medians of sessions.
    between_ratio: float | None


def spread_of(sessions_ns: Sequence[Samples]) -> Spread:
    """Measure both spreads of a case's stored samples."""
    logs = [[math.log(sample) for sample in samples] for samples in sessions_ns if samples]
    degrees = [len(samples) - 1 for samples in logs]
    squares = [n * variance(samples) for n, samples in zip(degrees, logs, strict=True) if n]
    centres = [median(samples) for samples in logs]
    return Spread(
        within_ratio=math.expm1(math.sqrt(math.fsum(squares) / sum(degrees))) if squares else None,
        between_ratio=math.expm1(stdev(centres)) if len(centres) > 1 else None,
    )


def compare_sessions(
    sessions_ns: Sequence[Samples], new_ns: Samples, *, default_spread_ratio: float, confidence: float = CONFIDENCE
) -> Change:
    r"""Estimate new over old, with bounds that a session without any change stays within.

    From five sessions on, with the medians :math:`m_i` of the logarithms of S stored sessions and m of the new one,

    .. math:: m - \bar m \pm t_{S-1, 0.99} \, s \sqrt{1 + 1/S}

    where s is the standard deviation of the :math:`m_i`: the one-sided prediction interval of one more session. With
    fewer sessions their samples are pooled and compared by Hodges-Lehmann, widened by `default_spread_ratio`, which an
    unchanged session exceeds once in a hundred.

    Raises ValueError: a side is empty, or holds a time that is not positive.

    *Source*: Hahn and Meeker, Statistical Intervals, section 4.7 (prediction interval of one future observation).
    """
    if len(sessions_ns) < MIN_SESSIONS:
        pooled = tuple(chain.from_iterable(sessions_ns))
        return compare_samples(pooled, new_ns, session_spread_ratio=default_spread_ratio, confidence=confidence)
    centres = [_log_median(samples) for samples in sessions_ns]
    estimate = _log_median(new_ns) - fmean(centres)
    reach = t_quantile(confidence, len(centres) - 1) * stdev(centres) * math.sqrt(1.0 + 1.0 / len(centres))
    return Change(
        estimate_ratio=math.exp(estimate),
        lower_ratio=math.exp(estimate - reach),
        upper_ratio=math.exp(estimate + reach),
    )


def basis_text(sessions_ns: Sequence[Samples], default_spread_ratio: float) -> str:
    """Say how many sessions and which spread the bounds rest on."""
    n_sessions = len(sessions_ns)
    if n_sessions < MIN_SESSIONS:
        return f"default spread {default_spread_ratio * 100:g} % stands in for {format_count(n_sessions, 'session')}"
    between = spread_of(sessions_ns).between_ratio or 0.0
    return f"spread {between * 100:.1f} % between {n_sessions} sessions"


def _log_median(samples_ns: Samples) -> float:
    if not samples_ns:
        raise ValueError("nothing to compare: a session has no samples")
    if min(samples_ns) <= 0:
        raise ValueError(f"a latency is not positive: {min(samples_ns)} ns")
    return median([math.log(sample) for sample in samples_ns])


@cache
def t_quantile(confidence: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution."""
    from scipy.stats import t  # late, for its import takes longer than most test runs can spare

    return float(t.ppf(confidence, degrees))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRatio:
    """New over old, over pairs."""

    median_ratio: float
    #: One-sided bounds of the median at the confidence asked for.
    lower_ratio: float
    upper_ratio: float
    n_pairs: int


def paired_ratio(old_ns: Sequence[int], new_ns: Sequence[int], *, confidence: float = 0.95) -> PairedRatio:
    """Summarise pairs taken one beside the other.

    The bounds are order statistics: the chance that the median lies above the k-th largest of n ratios is the chance
    of fewer than k heads in n tosses of a coin. They hold for any distribution of the noise.

    Raises ValueError: the sides differ in length, are too short for the confidence, or hold a time that is not
    positive.
    """
    if len(old_ns) != len(new_ns):
        raise ValueError(f"{len(old_ns)} old and {len(new_ns)} new latencies are no pairs")
    if any(value <= 0 for value in (*old_ns, *new_ns)):
        raise ValueError("a latency is not positive")
    n_pairs = len(old_ns)
    from scipy.stats import binom  # late, for its import takes longer than most commands

    n_cut = int(binom.ppf(1.0 - confidence, n_pairs, 0.5)) - 1 if n_pairs else -1
    if n_cut < 0:
        raise ValueError(f"{n_pairs} pairs are too few for a bound at {confidence:.0%}")
    ratios = sorted(new / old for old, new in zip(old_ns, new_ns, strict=True))
    return PairedRatio(
        median_ratio=median(ratios), lower_ratio=ratios[n_cut], upper_ratio=ratios[n_pairs - 1 - n_cut], n_pairs=n_pairs
    )
