"""How a new session stands to the stored ones: a prediction interval on the spread between sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from statistics import fmean, median, stdev, variance

from perfsuite.units import format_count
from perfsuite.verdict.significance import Change, compare_samples

#: Fewer sessions than this show too little of the spread between them.
MIN_SESSIONS = 5

#: With which each bound holds.
CONFIDENCE = 0.99

#: Samples of one session, ns.
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
