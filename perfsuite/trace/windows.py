"""The part of a trace that was enqueued within windows, such as the steps of a generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from perfsuite.trace.opencl.device_clock import AlignedTrace


def within(aligned: AlignedTrace, windows: Sequence[tuple[int, int]]) -> AlignedTrace:
    """Return a trace of the commands whose enqueue call began in one of the windows.

    Parameters
    ----------
    aligned
        The whole trace.
    windows
        Begin and end of each, ns of the host's clock, in the order of time and without overlap; the end is outside.
    """
    edges_ns = np.array(windows, dtype=np.int64).reshape(-1)
    chosen = np.searchsorted(edges_ns, aligned.trace.commands["host_start_ns"], side="right") % 2 == 1
    return replace(
        aligned,
        trace=replace(aligned.trace, commands=aligned.trace.commands[chosen]),
        queued_ns=aligned.queued_ns[chosen],
        submit_ns=aligned.submit_ns[chosen],
        start_ns=aligned.start_ns[chosen],
        end_ns=aligned.end_ns[chosen],
        anomalies=aligned.anomalies[chosen],
        device=aligned.device[chosen],
    )
