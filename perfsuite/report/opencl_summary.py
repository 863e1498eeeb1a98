"""What is reported of one process's OpenCL commands: counts, clocks, kernels, idle time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfsuite.records.codec import plain_fields
from perfsuite.records.opencl_commands import Commands, CommandType, OpenClTrace, TracedDevice
from perfsuite.trace.opencl.device_clock import AlignedTrace, DeviceClock, align
from perfsuite.trace.opencl.device_idle import IdleGap, IdleWindow, device_activity
from perfsuite.trace.opencl.kernel_statistics import KernelStatistics, Spread, kernel_statistics
from perfsuite.trace.opencl.stamps import ANOMALY_WORDS, Anomaly


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedGap:
    """An idle gap with the commands on either side of it, by a kernel's name or else by the command's type."""

    gap: IdleGap
    preceding: str
    following: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSummary:
    """One device that the process used."""

    device: TracedDevice
    #: None where no command had a time.
    clock: DeviceClock | None
    #: From the first START that was recorded to the last END; None where nothing was executed that has both.
    whole: IdleWindow | None
    #: The longest gaps, the longest first, and how many there are; None where commands were lost: it may have been busy
    #: with them.
    longest_gaps: tuple[NamedGap, ...] | None
    n_gaps: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClSummary:
    """One process."""

    pid: int
    n_commands: int
    #: None where the process did not end in order: what was not yet written went with it.
    n_lost: int | None
    #: What the log tells of losses, however the process ended.
    n_lost_at_least: int
    n_unfinished: int | None
    is_complete: bool
    #: Commands by type, the types that there are.
    n_by_type: Mapping[CommandType, int]
    #: Commands by anomaly and type, those that there are.
    n_by_anomaly: Mapping[Anomaly, Mapping[CommandType, int]]
    #: Commands with any anomaly.
    n_odd: int
    devices: tuple[DeviceSummary, ...]
    kernels: tuple[KernelStatistics, ...]

    @property
    def has_all(self) -> bool:
        """Whether every command that was executed by the end of the process is here."""
        return self.n_lost == 0


def summarize(trace: OpenClTrace, *, n_gaps: int) -> OpenClSummary:
    """Summarize a process, with so many of the longest gaps of each device."""
    aligned = align(trace)
    n_lost = trace.n_lost if trace.n_unfinished is not None else None
    return OpenClSummary(
        pid=trace.pid,
        n_commands=trace.commands.size,
        n_lost=n_lost,
        n_lost_at_least=trace.n_lost,
        n_unfinished=trace.n_unfinished,
        is_complete=trace.is_complete,
        n_by_type=_n_by_type(trace.commands),
        n_by_anomaly=_n_by_anomaly(aligned),
        n_odd=int((aligned.anomalies != 0).sum()),
        devices=tuple(_devices(aligned, n_gaps if n_lost == 0 else None)),
        kernels=kernel_statistics(aligned),
    )


def _devices(aligned: AlignedTrace, n_gaps: int | None) -> Iterator[DeviceSummary]:
    clocks = {each.device: each for each in aligned.clocks}
    for position, device in enumerate(aligned.trace.devices):
        activity = device_activity(aligned, position)
        gaps = None if n_gaps is None else activity.gaps(n_longest=n_gaps)
        yield DeviceSummary(
            device=device,
            clock=clocks.get(position),
            whole=activity.idle([activity.span])[0] if activity.span else None,
            longest_gaps=None if gaps is None else tuple(_named(aligned.trace, gap) for gap in gaps),
            n_gaps=None if gaps is None else activity.n_gaps,
        )


def _n_by_anomaly(aligned: AlignedTrace) -> dict[Anomaly, dict[CommandType, int]]:
    found = {each: aligned.trace.commands[aligned.anomalies == each] for each in ANOMALY_WORDS}
    return {each: _n_by_type(commands) for each, commands in found.items() if commands.size}


def _n_by_type(commands: Commands) -> dict[CommandType, int]:
    types, counts = np.unique(commands["type"], return_counts=True)
    return {CommandType(each): count for each, count in zip(types.tolist(), counts.tolist(), strict=True)}


def _named(trace: OpenClTrace, gap: IdleGap) -> NamedGap:
    return NamedGap(gap=gap, preceding=_name(trace, gap.preceding), following=_name(trace, gap.following))


def _name(trace: OpenClTrace, position: int) -> str:
    command = trace.commands[position]
    return trace.names[command["name"]] or CommandType(command["type"]).name.lower()


_CLOCK = ("n_readings", "drift_ppm", "drift_error_ppm", "error_ns", "tick_ns")


def plain_process(summary: OpenClSummary) -> dict[str, Any]:
    """Return one process."""
    return {
        **plain_fields(summary, "pid", "n_commands", "n_lost", "n_unfinished", "is_complete", "n_odd"),
        "n_by_type": _counts(summary.n_by_type),
        "n_by_anomaly": {str(each.name).lower(): _counts(counts) for each, counts in summary.n_by_anomaly.items()},
        "devices": [_device(each) for each in summary.devices],
        "kernels": [_kernel(each) for each in summary.kernels],
    }


def _counts(n_by_type: Mapping[CommandType, int]) -> dict[str, int]:
    return {each.name.lower(): count for each, count in n_by_type.items()}


def _device(summary: DeviceSummary) -> dict[str, Any]:
    clock, whole, gaps = summary.clock, summary.whole, summary.longest_gaps
    idle = None if gaps is None else whole
    return {
        **plain_fields(summary.device, "platform_name", "device_name", "driver_version", "timer_resolution_ns"),
        "clock": clock and {"basis": clock.basis.value, **plain_fields(clock, *_CLOCK)},
        "first_start_ns": whole and whole.start_ns,
        "last_end_ns": whole and whole.end_ns,
        "busy_ns": idle and idle.busy_ns,
        "idle_ratio": idle and idle.idle_ratio,
        "n_left_out": idle and idle.n_left_out,
        "n_gaps": summary.n_gaps,
        "longest_gaps": gaps
        and [
            {**plain_fields(each.gap, "start_ns", "duration_ns"), **plain_fields(each, "preceding", "following")}
            for each in gaps
        ],
    }


def _kernel(kernel: KernelStatistics) -> dict[str, Any]:
    return {
        **plain_fields(kernel, "name", "n", "n_left_out", "share_ratio", "tick_error_ratio"),
        "execution": _spread(kernel.execution, kernel.n),
        "queueing": _spread(kernel.queueing, kernel.n_queueing),
        "dispatch": _spread(kernel.dispatch, kernel.n_dispatch),
        "occupied": _spread(kernel.occupied, kernel.n_occupied),
    }


def _spread(spread: Spread | None, n: int) -> dict[str, int] | None:
    return None if spread is None else {"n": n, **plain_fields(spread, "total_ns", "median_ns", "p95_ns")}
