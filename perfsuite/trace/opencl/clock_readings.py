"""Readings of a device's clock, each between two times of the host's: by the device's timer, or by enqueue calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import Times
from perfsuite.records.opencl_commands import ClockSource, Commands, OpenClTrace

#: Readings that are made of enqueue calls, at most; of more commands the shortest calls are taken.
MOST_READINGS = 512


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClockReadings:
    """Readings of one device's clock in the order of the host's time; three arrays of one length, ns."""

    device_ns: Times
    host_before_ns: Times
    host_after_ns: Times

    @property
    def lower_ns(self) -> Times:
        """The least that the offset can be at each reading."""
        return self.host_before_ns - self.device_ns

    @property
    def upper_ns(self) -> Times:
        """The most that the offset can be at each reading."""
        return self.host_after_ns - self.device_ns

    def part(self, index: slice | npt.NDArray[np.intp]) -> ClockReadings:
        """Return some of the readings."""
        return ClockReadings(
            device_ns=self.device_ns[index],
            host_before_ns=self.host_before_ns[index],
            host_after_ns=self.host_after_ns[index],
        )


def timer_readings(trace: OpenClTrace, device: int) -> ClockReadings:
    """Return the readings of a device's timer."""
    return _in_order(_points(trace, device, ClockSource.TIMER))


def call_readings(trace: OpenClTrace, device: int, commands: Commands) -> ClockReadings:
    """Return the shortest enqueue call out of each of many stretches, and the layer's own empty commands."""
    length_ns = commands["host_end_ns"] - commands["host_start_ns"]
    n_each = max(1, -(-commands.size // MOST_READINGS))
    padded = np.append(length_ns, np.full(-commands.size % n_each, np.iinfo(np.int64).max))
    stretches = padded.reshape(-1, n_each)
    chosen = commands[stretches.argmin(axis=1) + n_each * np.arange(len(stretches))]
    calls = np.column_stack([chosen["queued_ns"], chosen["host_start_ns"], chosen["host_end_ns"]])
    return _in_order(np.vstack([_points(trace, device, ClockSource.MARKER), calls]))


def joined(one: ClockReadings, other: ClockReadings) -> ClockReadings:
    """Return the readings of both."""
    parts = [np.column_stack([each.device_ns, each.host_before_ns, each.host_after_ns]) for each in (one, other)]
    return _in_order(np.vstack(parts))


def _points(trace: OpenClTrace, device: int, source: ClockSource) -> Times:
    points = [each for each in trace.clock_points if each.device == device and each.source is source]
    rows = [(each.device_ns, each.host_before_ns, each.host_after_ns) for each in points]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _in_order(rows: Times) -> ClockReadings:
    device_ns, before_ns, after_ns = rows[np.argsort(rows[:, 1], kind="stable")].T
    return ClockReadings(device_ns=device_ns, host_before_ns=before_ns, host_after_ns=after_ns)
