"""Finds commands whose times cannot be right: they are dropped and counted.

The four times of a command pass in the order QUEUED, SUBMIT, START, END, from its enqueue call on and before its
process ended. A command whose START and END contradict that is dropped. One whose QUEUED or SUBMIT alone does, which
some drivers take by another clock, has an execution, and neither queueing nor dispatch.

*Source*: OpenCL 3.0, section 5.14 (``CL_PROFILING_COMMAND_*``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from math import log, sqrt
from statistics import fmean, median

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import CommandFlag, Commands, CommandType

#: The four times of a command, in the order in which they pass.
STAMPS = ("queued_ns", "submit_ns", "start_ns", "end_ns")

#: Of what has a larger share of its launches dropped, nothing is reported.
MOST_DROPPED_RATIO = 0.10

#: No device's clock gains more on the host's than this.
_MOST_GAIN = 1.001

Anomalies = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


class Anomaly(IntEnum):
    """What is odd about a command's times: the first of these that holds, in the order of `judge_stamps`."""

    NONE = 0
    FAILED = 1
    #: The driver gave no START or no END, or 0.
    ZERO_TIME = 2
    #: Of a kernel, which takes some time, END may not be START either.
    END_BEFORE_START = 3
    #: It took longer than there was from its enqueue call to the end of the process.
    IN_FUTURE = 4
    #: START is before the enqueue call by more than the clock's error; `device_clock.align` finds these.
    START_BEFORE_CALL = 5
    #: What is odd from here on leaves the execution as it is.
    NO_QUEUED_OR_SUBMIT = 6
    SUBMIT_BEFORE_QUEUED = 7
    START_BEFORE_SUBMIT = 8


ANOMALY_WORDS = {
    Anomaly.FAILED: "failed",
    Anomaly.ZERO_TIME: "without START or END",
    Anomaly.END_BEFORE_START: "did not end after the start",
    Anomaly.IN_FUTURE: "ended after the process",
    Anomaly.START_BEFORE_CALL: "started before the call",
    Anomaly.NO_QUEUED_OR_SUBMIT: "without QUEUED or SUBMIT",
    Anomaly.SUBMIT_BEFORE_QUEUED: "submitted before queued",
    Anomaly.START_BEFORE_SUBMIT: "started before submitted",
}


def judge_stamps(commands: Commands, ended_ns: int | None = None) -> Anomalies:
    """Judge the times of each command by each other; `ended_ns` is when its process ended, on the host's clock."""
    queued_ns, submit_ns, start_ns, end_ns = (commands[name] for name in STAMPS)
    is_kernel = commands["type"] == CommandType.KERNEL
    most_ns = np.inf if ended_ns is None else _MOST_GAIN * (ended_ns - commands["host_start_ns"])
    has_none = (commands["flags"] & CommandFlag.NO_PROFILE) != 0
    found = {
        Anomaly.FAILED: commands["status"] < 0,
        Anomaly.ZERO_TIME: has_none | (start_ns == 0) | (end_ns == 0),
        Anomaly.END_BEFORE_START: (end_ns < start_ns) | is_kernel & (end_ns == start_ns),
        Anomaly.IN_FUTURE: end_ns - start_ns > most_ns,
        Anomaly.NO_QUEUED_OR_SUBMIT: (queued_ns == 0) | (submit_ns == 0),
        Anomaly.SUBMIT_BEFORE_QUEUED: submit_ns < queued_ns,
        Anomaly.START_BEFORE_SUBMIT: start_ns < submit_ns,
    }
    return np.select(list(found.values()), list(found), Anomaly.NONE).astype(np.uint8)


def is_kept(anomalies: Anomalies) -> Mask:
    """Return which commands have a START and an END that can be right."""
    kept: Mask = (anomalies == Anomaly.NONE) | (anomalies > Anomaly.START_BEFORE_CALL)
    return kept


def has_queued(commands: Commands, anomalies: Anomalies) -> Mask:
    """Return which commands have a QUEUED besides that can be right."""
    has: Mask = is_kept(anomalies) & (commands["queued_ns"] > 0) & (commands["queued_ns"] <= commands["start_ns"])
    return has


def anomaly_counts(anomalies: Anomalies) -> Iterator[tuple[Anomaly, int]]:
    """Yield the anomalies that there are, and of how many commands."""
    counts = np.bincount(anomalies, minlength=len(Anomaly)).tolist()
    yield from ((each, counts[each]) for each in ANOMALY_WORDS if counts[each])


def anomaly_text(anomalies: Anomalies) -> str:
    """Say what is odd about some commands: '3 without START or END, 1 failed'."""
    return ", ".join(f"{count} {ANOMALY_WORDS[each]}" for each, count in anomaly_counts(anomalies)) or "none is odd"


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

    It is the greatest number of which all differences of START and END are multiples. A tick that is no whole number of
    ns, such as the 52.083 ns of 19.2 MHz, is the step of which all short differences are multiples to a few ns. Where
    the times do not tell, it is what the driver says, and no more than the smallest difference; 1 ns is what drivers
    say that do not know.

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
    """Return by how much the mean of so many durations may be off for the tick, at 95 %: tick / sqrt(n).

    A duration of a whole number of ticks and a share f of one is cut to that number or to one more, where its begin has
    no relation to the ticks: it is off by a variance of f (1 - f) tick^2, a quarter of tick^2 at most.
    """
    return tick_ns / sqrt(n_durations) if tick_ns and n_durations else 0.0


def resolved_center(durations_ns: Sequence[int], tick_ns: int | None) -> float:
    """Return the middle of durations, finer than the tick: the mean of those within a tick of their median.

    The median of an even number may have none so near.
    """
    middle_ns = median(durations_ns)
    near_ns = [each for each in durations_ns if abs(each - middle_ns) <= tick_ns] if tick_ns and tick_ns > 1 else []
    return fmean(near_ns) if near_ns else middle_ns
