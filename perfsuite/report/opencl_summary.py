"""What is told of one process's OpenCL commands: counts, clocks, kernels, idle time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perfsuite.records.opencl_commands import Commands, CommandType, OpenClTrace, TracedDevice
from perfsuite.trace.command_anomalies import Anomaly
from perfsuite.trace.device_clock import DeviceClock, align
from perfsuite.trace.device_idle import IdleGap, IdleWindow, device_activity
from perfsuite.trace.kernel_statistics import KernelStatistics, kernel_statistics


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
    #: From the first START to the last END; None where nothing sound was executed.
    whole: IdleWindow | None
    n_gaps: int
    #: The longest gaps, the longest first.
    longest_gaps: tuple[NamedGap, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClSummary:
    """One process."""

    pid: int
    n_commands: int
    n_lost: int
    n_unfinished: int | None
    is_complete: bool
    #: Commands by type, the types that there are.
    n_by_type: Mapping[CommandType, int]
    #: Commands by anomaly and type, those that there are; a command may have several anomalies.
    n_by_anomaly: Mapping[Anomaly, Mapping[CommandType, int]]
    #: Commands with any anomaly.
    n_left_out: int
    devices: tuple[DeviceSummary, ...]
    kernels: tuple[KernelStatistics, ...]


def summarize(trace: OpenClTrace, *, n_gaps: int) -> OpenClSummary:
    """Summarize a process, with so many of the longest gaps of each device."""
    aligned = align(trace)
    clocks = {each.device: each for each in aligned.clocks}
    devices = []
    for position, device in enumerate(trace.devices):
        activity = device_activity(aligned, position)
        summary = DeviceSummary(
            device=device,
            clock=clocks.get(position),
            whole=activity.idle([activity.span])[0] if activity.span else None,
            n_gaps=activity.n_gaps,
            longest_gaps=tuple(_named(trace, gap) for gap in activity.gaps(n_longest=n_gaps)),
        )
        devices.append(summary)
    return OpenClSummary(
        pid=trace.pid,
        n_commands=trace.commands.size,
        n_lost=trace.n_lost,
        n_unfinished=trace.n_unfinished,
        is_complete=trace.is_complete,
        n_by_type=_n_by_type(trace.commands),
        n_by_anomaly={
            each: _n_by_type(trace.commands[(aligned.anomalies & each) != 0]) for each in aligned.n_anomalies
        },
        n_left_out=int((~aligned.is_sound).sum()),
        devices=tuple(devices),
        kernels=kernel_statistics(aligned),
    )


def _n_by_type(commands: Commands) -> dict[CommandType, int]:
    types, counts = np.unique(commands["type"], return_counts=True)
    return {CommandType(each): count for each, count in zip(types.tolist(), counts.tolist(), strict=True)}


def _named(trace: OpenClTrace, gap: IdleGap) -> NamedGap:
    preceding, following = (_name(trace, position) for position in (gap.preceding, gap.following))
    return NamedGap(gap=gap, preceding=preceding, following=following)


def _name(trace: OpenClTrace, position: int) -> str:
    command = trace.commands[position]
    return trace.names[command["name"]] or CommandType(command["type"]).name.lower()
