"""Finds commands whose times cannot be right: they are dropped and counted.

The four times of a command pass in the order QUEUED, SUBMIT, START, END, from its enqueue call on and before its
process ended. A command whose START and END contradict that is dropped. One whose QUEUED or SUBMIT alone does, which
some drivers take by another clock, has an execution, and neither queueing nor dispatch.

*Source*: OpenCL 3.0, section 5.14 (``CL_PROFILING_COMMAND_*``).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from perfsuite.records.opencl_commands import CommandFlag, Commands, CommandType

#: The four times of a command, in the order in which they pass.
STAMPS = ("queued_ns", "submit_ns", "start_ns", "end_ns")

#: Of what has a larger share of its launches dropped, nothing is reported.
MOST_DROPPED_RATIO = 0.10

#: No device's clock gains more on the host's than this.
_MOST_GAIN = 1.001

#: An `Anomaly` for each command.
Anomalies = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


class Anomaly(IntEnum):
    """What is odd about a command's times: the first of these that holds, in the order of `judge_stamps`."""

    NONE = 0
    #: The command ended with an error.
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


#: What is said of a command with each anomaly.
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
    kept: Mask = (anomalies == Anomaly.NONE) | (anomalies > Anomaly.START_BEFORE_CALL)
    return kept


def has_queued(commands: Commands, anomalies: Anomalies) -> Mask:
    has: Mask = is_kept(anomalies) & (commands["queued_ns"] > 0) & (commands["queued_ns"] <= commands["start_ns"])
    return has


def anomaly_counts(anomalies: Anomalies) -> Iterator[tuple[Anomaly, int]]:
    """Yield the anomalies that there are, and of how many commands."""
    counts = np.bincount(anomalies, minlength=len(Anomaly)).tolist()
    yield from ((each, counts[each]) for each in ANOMALY_WORDS if counts[each])


def anomaly_text(anomalies: Anomalies) -> str:
    """Say what is odd about some commands: '3 without START or END, 1 failed'."""
    return ", ".join(f"{count} {ANOMALY_WORDS[each]}" for each, count in anomaly_counts(anomalies)) or "none is odd"
