"""The part of a trace that was enqueued within windows, such as the steps of a generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perfsuite.trace.opencl.device_clock import AlignedTrace


def within(aligned: AlignedTrace, windows: Sequence[tuple[int, int]]) -> AlignedTrace:
    """Return a trace of the commands whose enqueue call began in one of the windows.

    A window is a begin and an end, which is outside, in ns of the host's clock; they are in the order of time, and do
    not overlap.
    """
    edges_ns = np.array(windows, dtype=np.int64).reshape(-1)
    chosen = np.searchsorted(edges_ns, aligned.trace.commands["host_start_ns"], side="right") % 2 == 1
    columns = ("queued_ns", "submit_ns", "start_ns", "end_ns", "anomalies", "device")
    parts = {name: getattr(aligned, name)[chosen] for name in columns}
    return replace(aligned, trace=replace(aligned.trace, commands=aligned.trace.commands[chosen]), **parts)
