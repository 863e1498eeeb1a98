"""The tick of a device's clock: the step in which its times come, and what it leaves unknown of a duration.

The tick is measured: the greatest number of which all differences of START and END are multiples. Where a tick is no
whole number of ns, such as the 52.083 ns of 19.2 MHz, times are cut to one, and it is the step of which all short
differences are multiples to a few ns. Where the times do not tell, it is what the driver says, and no more than the
smallest difference; 1 ns is what drivers say that do not know.

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

#: Fewer differences may all be of several ticks; how unlikely chance is (e^-5).
_LEAST_DIFFERENCES, _LOG_CHANCE = 8, 5.0
#: The shortest step that can be distinguished where times are cut to a ns, and by how much a difference of two
#: differences may be off for that.
_LEAST_STEP_NS, _CUT_NS = 8, 3
#: A difference is short up to so many ticks; of those of a few, the step is estimated at first.
_SHORT, _FEW = 16, 4

#: A kernel of which the tick leaves more than this share unknown is not measured.
MOST_TICK_ERROR_RATIO = 0.5


def measured_tick_ns(times_ns: Times, reported_ns: int | None = None) -> int | None:
    """Return the tick of a clock by times that it gave, 0 left out; `None` where neither they nor the driver tell.

    `reported_ns` is ``CL_DEVICE_PROFILING_TIMER_RESOLUTION``.
    """
    differences_ns = np.diff(np.unique(times_ns[times_ns != 0]))
    told_ns = reported_ns if reported_ns and reported_ns > 1 else None
    if not differences_ns.size:
        return told_ns
    distinct_ns = np.unique(differences_ns)
    divisor_ns = int(np.gcd.reduce(distinct_ns))
    # Chance would have a difference be a multiple of d with 1 / d.
    if differences_ns.size >= _LEAST_DIFFERENCES:
        if distinct_ns.size * log(divisor_ns) >= _LOG_CHANCE:
            return divisor_ns
        if (step_ns := _step_ns(distinct_ns)) is not None:
            return step_ns
    return min(told_ns, int(distinct_ns[0])) if told_ns else None


def _step_ns(distinct_ns: Times) -> int | None:
    """Return the step of short differences, and of those between them; 1 if they have none, `None` if all are long."""
    apart_ns = np.unique(np.concatenate([distinct_ns, np.diff(distinct_ns)]))
    apart_ns = apart_ns[apart_ns >= _CUT_NS]
    if not apart_ns.size or apart_ns[0] < _LEAST_STEP_NS:
        return 1
    n_ticks = np.rint(apart_ns / np.median(apart_ns[apart_ns <= apart_ns[0] + 2 * _CUT_NS]))
    few = n_ticks <= _FEW
    n_ticks = np.rint(apart_ns / np.median(apart_ns[few] / n_ticks[few]))
    short_ns, n_ticks = apart_ns[n_ticks <= _SHORT], n_ticks[n_ticks <= _SHORT]
    step_ns = float(np.median(short_ns / n_ticks))
    is_step = bool((np.abs(short_ns - n_ticks * step_ns) <= _CUT_NS).all())
    # Chance would have a difference be so near to a multiple with 2 cuts and a ns over the step.
    is_no_chance = (short_ns.size - 1) * log(step_ns / (2 * _CUT_NS + 1)) >= _LOG_CHANCE
    return round(step_ns) if is_step and is_no_chance else None


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
