"""The tick of a device's clock: the step in which its times come, and what it leaves unknown of a duration.

The tick is measured: the greatest number of which all differences of START and END are multiples. Where a tick is no
whole number of ns, such as the 52.083 ns of 19.2 MHz, times are rounded to one, and the step in which the differences
themselves come stands for it. Of times too sparse to tell, it is no more than the smallest difference, and what the
driver says.

A duration of a whole number of ticks and a share f of one is cut to that number or to one more, where its begin has no
relation to the ticks: it is off by a variance of f (1 - f) tick^2, a quarter of tick^2 at most. The mean of n durations
is off, at 95 %, by no more than

    2 sqrt(tick^2 / 4) / sqrt(n) = tick / sqrt(n)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, median

import numpy as np

from perfsuite.records.engine_trace import Times

#: Fewer differences of a few ticks do not tell a tick that is no whole number of ns.
_LEAST_DIFFERENCES = 8
_MOST_TICKS = 8

#: How far a difference of two differences of times may be off where each time is cut to a ns.
_ROUNDED_NS = 2

#: A kernel that takes fewer ticks may well end in the tick in which it began; of a longer one that was not stamped.
LEAST_TICKS_STAMPED = 4

#: A kernel of which the tick leaves more than this share unknown is not measured.
MOST_TICK_ERROR_RATIO = 0.5


def measured_tick_ns(times_ns: Times, reported_ns: int | None = None) -> int | None:
    """Return the tick of a clock by times that it gave, 0 left out; `None` where neither they nor the driver tell.

    `reported_ns` is ``CL_DEVICE_PROFILING_TIMER_RESOLUTION``.
    """
    differences_ns = np.unique(np.diff(np.unique(times_ns[times_ns != 0])))
    if not differences_ns.size:
        return reported_ns or None
    common_ns, least_ns = int(np.gcd.reduce(differences_ns)), int(differences_ns[0])
    if common_ns > 1 and differences_ns.size >= _LEAST_DIFFERENCES:
        return common_ns
    return _rounded_tick_ns(differences_ns) or (min(reported_ns, least_ns) if reported_ns else None)


def _rounded_tick_ns(differences_ns: Times) -> int | None:
    """Return a tick whose times are cut to a ns: the differences, and how far apart these lie.

    Each of them may be 2 ns off. It is 1 where they lie as close as that, and `None` where they are too few or have no
    common step.
    """
    apart_ns = np.unique(np.concatenate([differences_ns, np.diff(differences_ns)]))
    apart_ns = apart_ns[apart_ns > _ROUNDED_NS]
    if not apart_ns.size:
        return None
    if apart_ns[0] <= 2 * _ROUNDED_NS:
        return 1
    near_ns = apart_ns[apart_ns <= _MOST_TICKS * apart_ns[0]]
    n_ticks = np.rint(near_ns / apart_ns[0])
    tick_ns = float(np.median(near_ns / n_ticks))
    is_step = bool((np.abs(near_ns - n_ticks * tick_ns) <= _ROUNDED_NS + 1).all())
    return round(tick_ns) if is_step and near_ns.size >= _LEAST_DIFFERENCES else None


def tick_error_ns(tick_ns: int | None, n_durations: int) -> float:
    """Return by how much the mean of so many durations may be off for the tick, at 95 %."""
    return tick_ns / sqrt(n_durations) if tick_ns and n_durations else 0.0


def resolved_center(durations_ns: Sequence[int], tick_ns: int | None) -> float:
    """Return the middle of durations, finer than the tick: the mean of those within a tick of their median."""
    middle_ns = median(durations_ns)
    if not tick_ns or tick_ns <= 1:
        return middle_ns
    return fmean(each for each in durations_ns if abs(each - middle_ns) <= tick_ns)
