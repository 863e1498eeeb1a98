"""Counts what is odd about the times that a driver gave, and says it in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from perfsuite.trace.opencl.device_clock import AlignedTrace
from perfsuite.trace.opencl.stamps import Anomaly, Flags, Stamp

#: What is said of a command with each anomaly.
ANOMALY_WORDS = {
    Anomaly.ZERO_TIME: "without a time",
    Anomaly.SUBMIT_BEFORE_QUEUED: "submitted before queued",
    Anomaly.START_BEFORE_SUBMIT: "started before submitted",
    Anomaly.END_BEFORE_START: "ended before started",
    Anomaly.OUTSIDE_CALL: "queued outside of the call",
    Anomaly.WRAPPED: "with a counter that wrapped",
    Anomaly.FAILED: "failed",
    Anomaly.OVERLAPS: "started before the kernel in front had ended",
    Anomaly.NO_LENGTH: "ended when started",
    Anomaly.START_BEFORE_CALL: "started before the call",
}


def n_by_stamp(missing: Flags) -> dict[Stamp, int]:
    """Count the commands of which each time is missing, those times that are."""
    counts = {stamp: int(((missing & stamp) != 0).sum()) for stamp in Stamp}
    return {stamp: count for stamp, count in counts.items() if count}


def anomaly_text(aligned: AlignedTrace, index: npt.NDArray[np.intp]) -> str:
    """Say what is odd about some commands: '3 without a time, 1 failed'."""
    flags = aligned.anomalies[index]
    counts = {each: int(((flags & each) != 0).sum()) for each in Anomaly}
    return ", ".join(f"{count} {ANOMALY_WORDS[each]}" for each, count in counts.items() if count) or "none is odd"


def stamp_notes(aligned: AlignedTrace) -> Iterator[str]:
    """Yield a line for each device whose driver gave times that cannot be right: which, and how many."""
    for position, device in enumerate(aligned.trace.devices):
        here = np.flatnonzero(aligned.device == position)
        if not aligned.missing[here].any():
            continue
        missing = ", ".join(f"{count} {stamp.name}" for stamp, count in n_by_stamp(aligned.missing[here]).items())
        yield (
            f"{device.device_name}, driver {device.driver_version}: {missing} of {here.size} commands cannot be right: "
            f"{anomaly_text(aligned, here)}"
        )
