"""Finds the commands whose times cannot be right: they are counted, and left out of every statistic."""

from __future__ import annotations

from enum import IntFlag
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from perfsuite.records.opencl_commands import CommandFlag, Commands

#: The four times of a command, in the order in which they pass.
STAMPS = ("queued_ns", "submit_ns", "start_ns", "end_ns")

#: A later time that is smaller by more than this has wrapped: the smallest counters have 32 bits of 1 ns or more.
_WRAP_NS = 1 << 31

#: `Anomaly` flags of commands.
Flags = npt.NDArray[np.uint8]


class Anomaly(IntFlag):
    """Why a command's times are not to be trusted."""

    #: The driver gave no time, or gave 0.
    ZERO_TIME = 1
    SUBMIT_BEFORE_QUEUED = 2
    START_BEFORE_SUBMIT = 4
    END_BEFORE_START = 8
    #: QUEUED is outside of the enqueue call by more than the clock's error.
    OUTSIDE_CALL = 16
    #: The device's counter wrapped while the command was on its way.
    WRAPPED = 32
    #: The command ended with an error.
    FAILED = 64


def own_anomalies(commands: Commands) -> Flags:
    """Return the `Anomaly` flags that a command's own times show, whatever the host's clock says."""
    queued_ns, submit_ns, start_ns, end_ns = times = [commands[name] for name in STAMPS]
    is_zero = (commands["flags"] & CommandFlag.NO_PROFILE) != 0
    for each in times:
        is_zero |= each == 0
    is_wrapped = np.zeros(commands.size, dtype=bool)
    for earlier, later in pairwise(times):
        is_wrapped |= earlier - later > _WRAP_NS
    found = {
        Anomaly.ZERO_TIME: is_zero,
        Anomaly.SUBMIT_BEFORE_QUEUED: (submit_ns < queued_ns) & ~is_wrapped & ~is_zero,
        Anomaly.START_BEFORE_SUBMIT: (start_ns < submit_ns) & ~is_wrapped & ~is_zero,
        Anomaly.END_BEFORE_START: (end_ns < start_ns) & ~is_wrapped & ~is_zero,
        Anomaly.WRAPPED: is_wrapped & ~is_zero,
        Anomaly.FAILED: commands["status"] < 0,
    }
    flags = np.zeros(commands.size, dtype=np.uint8)
    for anomaly, holds in found.items():
        flags |= np.where(holds, np.uint8(anomaly), np.uint8(0))
    return flags
