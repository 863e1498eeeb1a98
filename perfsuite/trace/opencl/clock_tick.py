"""The tick of a device's clock: the step in which its times come, and what it leaves unknown of a duration.

The tick is measured: the greatest number of which all differences of START and END are multiples. Where a tick is no
whole number of ns, such as the 52.083 ns of 19.2 MHz, times are cut to one, and the step is the longest period that
nearly all short differences share. Of times too few to tell, it is no more than the smallest difference, and what the
driver says; 1 ns is what drivers say that do not know.

A duration of a whole number of ticks and a share f of one is cut to that number or to one more, where its begin has no
relation to the ticks: it is off by a variance of f (1 - f) tick^2, a quarter of tick^2 at most. The mean of n durations
is off, at 95 %, by no more than

    2 sqrt(tick^2 / 4) / sqrt(n) = tick / sqrt(n)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from statistics import fmean, median

import numpy as np

from perfsuite.records.engine_trace import Times

#: Fewer differences may all be of several ticks.
_LEAST_DIFFERENCES = 8

#: How far a difference of two differences of times may be off where each time is cut to a ns.
_ROUNDED_NS = 2

#: The longest difference of which periods are looked for, and into how many steps a frequency of 1 / ns is divided.
_MOST_NS, _N_STEPS = 1 << 16, 1 << 18
#: The shortest period that can be distinguished where times are cut to a ns.
_LEAST_PERIOD_NS = 8
#: How much of the differences share a period (1: all), and below what they do not; how unlikely chance is (e^-5).
_SHARED, _NOT_SHARED, _LOG_CHANCE = 0.9, 0.5, 5.0

#: A kernel that takes fewer ticks may well end in the tick in which it began; of a longer one that was not stamped.
LEAST_TICKS_STAMPED = 4

#: A kernel of which the tick leaves more than this share unknown is not measured.
MOST_TICK_ERROR_RATIO = 0.5


def measured_tick_ns(times_ns: Times, reported_ns: int | None = None) -> int | None:
    """Return the tick of a clock by times that it gave, 0 left out; `None` where neither they nor the driver tell.

    `reported_ns` is ``CL_DEVICE_PROFILING_TIMER_RESOLUTION``.
    """
    differences_ns = np.diff(np.unique(times_ns[times_ns != 0]))
    if not differences_ns.size:
        return reported_ns if reported_ns != 1 else None
    distinct_ns = np.unique(differences_ns)
    is_many = differences_ns.size >= _LEAST_DIFFERENCES
    measured_ns = (is_many and (_divisor_ns(distinct_ns) or _step_ns(distinct_ns))) or _period_ns(distinct_ns)
    return measured_ns or (min(reported_ns, int(distinct_ns[0])) if reported_ns and reported_ns > 1 else None)


def _divisor_ns(distinct_ns: Times) -> int | None:
    """Return what all differences are multiples of; chance would have a difference be a multiple of d with 1 / d."""
    divisor_ns = int(np.gcd.reduce(distinct_ns))
    return divisor_ns if distinct_ns.size * log(divisor_ns) >= _LOG_CHANCE else None


def _step_ns(distinct_ns: Times) -> int | None:
    """Return the least difference where all are multiples of it, to a ns: kernels of a few ticks."""
    n_ticks = np.rint(distinct_ns / distinct_ns[0])
    step_ns = float(np.median(distinct_ns / n_ticks))
    is_step = bool((np.abs(distinct_ns - n_ticks * step_ns) <= 1).all())
    # Of three neighbouring ns one is hit by chance with 3 / step.
    return round(step_ns) if is_step and np.unique(n_ticks).size * log(step_ns / 3) >= _LOG_CHANCE else None


def _period_ns(distinct_ns: Times) -> int | None:
    """Return the period that short differences share, to a ns; 1 where there is none, `None` where they do not tell.

    The strength of a period T is ``|mean(exp(2 pi i d / T))|`` of the differences d, and of how far apart these lie: 1
    where all are multiples. Of n differences that are not, the strongest of M periods has about ``sqrt(ln(M) / n)``.
    """
    apart_ns = np.unique(np.concatenate([distinct_ns, np.diff(distinct_ns)]))
    apart_ns = apart_ns[(apart_ns > _ROUNDED_NS) & (apart_ns <= _MOST_NS)]
    if not apart_ns.size or log(apart_ns[-1]) + _LOG_CHANCE > _SHARED**2 * apart_ns.size:
        return None
    strengths = np.abs(np.fft.rfft(np.bincount(apart_ns), _N_STEPS))[: _N_STEPS // _LEAST_PERIOD_NS] / apart_ns.size
    n_longer = int(np.argmax(strengths < _NOT_SHARED))  # periods that are longer than all differences
    if not n_longer:
        return None
    is_shared = strengths[n_longer:] >= _SHARED
    if not is_shared.any():
        return 1
    first = n_longer + int(np.argmax(is_shared))
    beyond = first + int(np.argmax(strengths[first:] < _SHARED))
    period_ns = _N_STEPS / (first + int(np.argmax(strengths[first : max(beyond, first + 1)])))
    long_ns = apart_ns[apart_ns >= period_ns / 2]
    return round(float(np.median(long_ns / np.rint(long_ns / period_ns))))


def tick_error_ns(tick_ns: int | None, n_durations: int) -> float:
    """Return by how much the mean of so many durations may be off for the tick, at 95 %."""
    return tick_ns / sqrt(n_durations) if tick_ns and n_durations else 0.0


def resolved_center(durations_ns: Sequence[int], tick_ns: int | None) -> float:
    """Return the middle of durations, finer than the tick: the mean of those within a tick of their median.

    The median of an even number may have none so near.
    """
    middle_ns = median(durations_ns)
    near_ns = [each for each in durations_ns if abs(each - middle_ns) <= tick_ns] if tick_ns and tick_ns > 1 else []
    return fmean(near_ns) if near_ns else middle_ns
