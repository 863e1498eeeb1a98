"""The tick of a device's clock: the step in which its times come, and what it leaves unknown of a duration.

The tick is measured: the greatest number of which all differences of START and END are multiples. Where a tick is no
whole number of ns, such as the 52.083 ns of 19.2 MHz, times are rounded to one, and the smallest difference stands for
it, if all differences of a few ticks lie within the rounding of a multiple of it. Of times too sparse to tell, it is no
more than the smallest difference, and what the driver says.

A duration of a begin and an end that are both cut to the tick is off by a triangle of variance tick^2 / 6, where the
begin has no relation to the ticks. The mean of n durations is thus off, at 95 %, by

    2 tick / sqrt(6 n)

*Source*: Bennett, 'Spectra of quantized signals', Bell System Technical Journal 27 (1948): the error of one cut is
uniform, of variance tick^2 / 12, and independent of the other.
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
    near_ns = differences_ns[differences_ns <= _MOST_TICKS * least_ns]
    n_ticks = np.rint(near_ns / least_ns)
    if near_ns.size < _LEAST_DIFFERENCES:
        return min(reported_ns, least_ns) if reported_ns else None
    return least_ns if (np.abs(near_ns - n_ticks * least_ns) <= 1 + n_ticks).all() else 1


def tick_error_ns(tick_ns: int | None, n_durations: int) -> float:
    """Return by how much the mean of so many durations may be off for the tick, at 95 %."""
    return 2 * tick_ns / sqrt(6 * n_durations) if tick_ns and n_durations else 0.0


def resolved_center(durations_ns: Sequence[int], tick_ns: int | None) -> float:
    """Return the middle of durations, finer than the tick: the mean of those within a tick of their median."""
    middle_ns = median(durations_ns)
    if not tick_ns or tick_ns <= 1:
        return middle_ns
    return fmean(each for each in durations_ns if abs(each - middle_ns) <= tick_ns)
