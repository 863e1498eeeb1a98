"""Puts the times of a device's clock on the host's, and finds the commands whose times cannot be right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import OpenClTrace
from perfsuite.trace.opencl.clock_choice import STAMPS, Anomaly, ClockBasis, DeviceClock, Flags, best_fit, own_anomalies

__all__ = ["AlignedTrace", "ClockBasis", "DeviceClock", "align"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AlignedTrace:
    """A trace with its commands' times on the host's clock; the arrays are parallel to ``trace.commands``."""

    trace: OpenClTrace
    #: Host times, ns. Of commands with an anomaly they mean nothing.
    queued_ns: Times
    submit_ns: Times
    start_ns: Times
    end_ns: Times
    #: `Anomaly` flags; 0 where a command is sound.
    anomalies: Flags
    #: Position of the command's device among the trace's devices.
    device: npt.NDArray[np.int64]
    #: One for each device of which any command or timer reported the time.
    clocks: tuple[DeviceClock, ...]

    @property
    def is_sound(self) -> npt.NDArray[np.bool_]:
        """Which commands may be counted in statistics."""
        sound: npt.NDArray[np.bool_] = self.anomalies == 0
        return sound


def align(trace: OpenClTrace) -> AlignedTrace:
    """Put a trace's commands on the host's clock."""
    by_queue = np.zeros(max((each.queue for each in trace.queues), default=0) + 1, dtype=np.int64)
    for each in trace.queues:
        by_queue[each.queue] = each.device
    device = by_queue[trace.commands["queue"]]
    anomalies = own_anomalies(trace.commands)
    host_ns = np.zeros((len(STAMPS), trace.commands.size), dtype=np.int64)
    clocks = []
    for position in range(len(trace.devices)):
        here = np.flatnonzero(device == position)
        fit = best_fit(trace, position, trace.commands[here], anomalies[here])
        if fit is not None:
            host_ns[:, here] = fit.host_ns
            anomalies[here[fit.is_outside]] |= np.uint8(Anomaly.OUTSIDE_CALL)
            clocks.append(fit.clock)
    stamps = dict(zip(STAMPS, host_ns, strict=True))
    return AlignedTrace(trace=trace, anomalies=anomalies, device=device, clocks=tuple(clocks), **stamps)
