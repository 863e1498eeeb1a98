"""What is reported of one process's OpenCL commands: counts, clocks, kernels, idle time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfsuite.records.opencl_commands import Commands, CommandType, OpenClTrace, TracedDevice
from perfsuite.report.plain_fields import plain_fields
from perfsuite.trace.opencl.device_clock import AlignedTrace, DeviceClock, align
from perfsuite.trace.opencl.device_idle import DeviceActivity, IdleGap, IdleWindow, Window, device_activity
from perfsuite.trace.opencl.kernel_statistics import KernelStatistics, Spread, kernel_statistics
from perfsuite.trace.opencl.stamps import ANOMALY_WORDS, Anomaly


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedGap:
    """An idle gap with the commands on either side of it, by a kernel's name or else by the command's type."""

    gap: IdleGap
    preceding: str
    following: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceIdle:
    """When a device was idle, of a process whose commands are all known."""

    #: From the first START to the last END; None where nothing was executed that has both.
    whole: IdleWindow | None
    n_gaps: int
    #: The longest gaps, the longest first.
    longest_gaps: tuple[NamedGap, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSummary:
    """One device that the process used."""

    device: TracedDevice
    #: None where no command had a time.
    clock: DeviceClock | None
    #: First START and last END that were recorded; None where nothing was executed that has both.
    span: Window | None
    #: None where commands are missing: it may have been busy with them.
    idle: DeviceIdle | None


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
        yield DeviceSummary(
            device=device,
            clock=clocks.get(position),
            span=activity.span,
            idle=None if n_gaps is None else _idle(aligned.trace, activity, n_gaps),
        )


def _idle(trace: OpenClTrace, activity: DeviceActivity, n_gaps: int) -> DeviceIdle:
    return DeviceIdle(
        whole=activity.idle([activity.span])[0] if activity.span else None,
        n_gaps=activity.n_gaps,
        longest_gaps=tuple(_named(trace, gap) for gap in activity.gaps(n_longest=n_gaps)),
    )


def _n_by_anomaly(aligned: AlignedTrace) -> dict[Anomaly, dict[CommandType, int]]:
    found = {each: aligned.trace.commands[aligned.anomalies == each] for each in ANOMALY_WORDS}
    return {each: _n_by_type(commands) for each, commands in found.items() if commands.size}


def _n_by_type(commands: Commands) -> dict[CommandType, int]:
    types, counts = np.unique(commands["type"], return_counts=True)
    return {CommandType(each): count for each, count in zip(types.tolist(), counts.tolist(), strict=True)}


def _named(trace: OpenClTrace, gap: IdleGap) -> NamedGap:
    preceding, following = (_name(trace, position) for position in (gap.preceding, gap.following))
    return NamedGap(gap=gap, preceding=preceding, following=following)


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
    clock, span, idle = summary.clock, summary.span, summary.idle
    whole = idle and idle.whole
    return {
        **plain_fields(summary.device, "platform_name", "device_name", "driver_version", "timer_resolution_ns"),
        "clock": clock and {"basis": clock.basis.value, **plain_fields(clock, *_CLOCK)},
        "first_start_ns": span and span[0],
        "last_end_ns": span and span[1],
        "busy_ns": whole and whole.busy_ns,
        "idle_ratio": whole and whole.idle_ratio,
        "n_left_out": whole and whole.n_left_out,
        "n_gaps": idle and idle.n_gaps,
        "longest_gaps": idle
        and [
            {**plain_fields(each.gap, "start_ns", "duration_ns"), **plain_fields(each, "preceding", "following")}
            for each in idle.longest_gaps
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
