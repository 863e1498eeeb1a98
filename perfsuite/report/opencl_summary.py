"""What is reported of one process's OpenCL commands: counts, clocks, kernels, idle time; for people and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfsuite.records.codec import plain_fields
from perfsuite.records.opencl_commands import Commands, CommandType, OpenClTrace, TracedDevice
from perfsuite.report.sheet import Sheet
from perfsuite.trace.opencl.device_clock import AlignedTrace, ClockBasis, DeviceClock, align
from perfsuite.trace.opencl.device_idle import IdleGap, IdleWindow, device_activity
from perfsuite.trace.opencl.kernel_statistics import KernelStatistics, Spread, kernel_statistics
from perfsuite.trace.opencl.stamps import ANOMALY_WORDS, Anomaly
from perfsuite.units import format_count, format_ns


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
        "n_by_type": _by_type(summary.n_by_type),
        "n_by_anomaly": {str(each.name).lower(): _by_type(counts) for each, counts in summary.n_by_anomaly.items()},
        "devices": [_device(each) for each in summary.devices],
        "kernels": [_kernel(each) for each in summary.kernels],
    }


def _by_type(n_by_type: Mapping[CommandType, int]) -> dict[str, int]:
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


_TYPE_WORDS = {
    CommandType.SVM: "command of shared memory",
    CommandType.NATIVE: "native function",
    CommandType.OTHER: "other command",
}

_BASIS_WORDS = {
    ClockBasis.TIMER: "its timer",
    ClockBasis.ENQUEUE_CALLS: "enqueue calls",
}


def count_lines(summary: OpenClSummary) -> Iterator[str]:
    """Yield what was counted: commands, what is missing, what is left out, and each device with its clock."""
    counts = list(_counts(summary.n_by_type))
    total = format_count(summary.n_commands, "OpenCL command")
    yield f"process {summary.pid}: {total}{': ' if counts else ''}{', '.join(counts)}"
    yield f"  {'; '.join(_completeness(summary))}"
    for each in summary.devices:
        device = each.device
        yield f"  {device.platform_name}, {device.device_name}, driver {device.driver_version}"
        yield f"  {_clock_words(each.clock)}"


def kernel_line(summary: OpenClSummary, n_top: int) -> str:
    """Say which kernels the table shows, and what its columns are of."""
    n_all = len(summary.kernels)
    top = f", the {n_top} with the longest total" if n_all > n_top else ""
    known = "" if summary.has_all else ", of the recorded launches alone"
    columns = "total to p95: execution; tick: error of its mean; queueing, dispatch, occupied: medians"
    return f"{format_count(n_all, 'kernel')}{top}{known}; {columns}"


def kernel_table(summary: OpenClSummary, n_top: int) -> Sheet:
    """Show the kernels with the longest totals."""
    columns: dict[str, Callable[[KernelStatistics], object]] = {
        "kernel": lambda each: each.name,
        ">n": lambda each: f"{each.n} of {each.n + each.n_left_out}" if each.n_left_out else each.n,
        ">total": lambda each: each.execution and format_ns(each.execution.total_ns),
        ">share": lambda each: each.execution and f"{each.share_ratio:.1%}",
        ">median": lambda each: _median(each.execution),
        ">p95": lambda each: each.execution and format_ns(each.execution.p95_ns),
        ">tick": lambda each: None if each.tick_error_ratio is None else f"{100 * each.tick_error_ratio:.2g} %",
        ">queueing": lambda each: _median(each.queueing),
        ">dispatch": lambda each: _median(each.dispatch),
        ">occupied": lambda each: _median(each.occupied),
    }
    return Sheet.of(summary.kernels[:n_top], columns)


def _median(spread: Spread | None) -> str | None:
    return None if spread is None else format_ns(spread.median_ns)


def idle_line(device: DeviceSummary, summary: OpenClSummary) -> str:
    """Say how much of the time from its first command to its last a device was idle, or why that is not known."""
    name = device.device.device_name
    if device.n_gaps is None:
        return f"{name}: idle time not known: {_missing(summary)}"
    whole = device.whole
    if whole is None or whole.idle_ratio is None:
        return f"{name}: executed nothing"
    length, gaps = format_ns(whole.end_ns - whole.start_ns), format_count(device.n_gaps, "gap")
    bound = "at most " if whole.n_left_out else ""
    return f"{name}: idle {bound}{whole.idle_ratio:.1%} of the {length} from its first command to its last, in {gaps}"


def gap_table(device: DeviceSummary) -> Sheet:
    """Show the longest gaps of a device, their begin counted from its first command's."""
    first_ns = device.whole.start_ns if device.whole else 0
    columns: dict[str, Callable[[NamedGap], object]] = {
        ">longest gaps": lambda each: format_ns(each.gap.duration_ns),
        ">begin at": lambda each: format_ns(each.gap.start_ns - first_ns),
        "after": lambda each: each.preceding,
        "before": lambda each: each.following,
    }
    return Sheet.of(device.longest_gaps or (), columns)


def _counts(n_by_type: Mapping[CommandType, int]) -> Iterator[str]:
    for each, count in n_by_type.items():
        yield format_count(count, _TYPE_WORDS.get(each, each.name.lower()))


def _completeness(summary: OpenClSummary) -> Iterator[str]:
    if summary.n_lost is None:
        yield f"lost: not known{f', {summary.n_lost_at_least} at least' if summary.n_lost_at_least else ''}"
    else:
        yield f"{summary.n_lost or 'none'} lost"
    if summary.n_unfinished is None:
        yield "the process was killed or still runs, so what came last is missing"
    else:
        yield f"{summary.n_unfinished or 'none'} unfinished"
    if not summary.n_odd:
        yield "no anomaly"
        return
    kinds = [f"{' and '.join(_counts(counts))} {ANOMALY_WORDS[each]}" for each, counts in summary.n_by_anomaly.items()]
    yield f"{summary.n_odd} with an anomaly: {', '.join(kinds)}"


def _missing(summary: OpenClSummary) -> str:
    if summary.n_lost is None:
        return "the process did not end in order"
    return f"{format_count(summary.n_lost, 'command')} {'was' if summary.n_lost == 1 else 'were'} lost"


def _clock_words(clock: DeviceClock | None) -> str:
    if clock is None:
        return "its clock could not be read"
    error = "not known" if clock.error_ns is None else f"at most {format_ns(clock.error_ns)}"
    basis = f"{_BASIS_WORDS[clock.basis]} ({clock.n_readings} readings)"
    drift = f"{round(clock.drift_ppm):+d} ± {clock.drift_error_ppm:.0f} ppm"
    tick = "not known" if clock.tick_ns is None else format_ns(clock.tick_ns)
    return f"clock: tick {tick}, error {error}, drift {drift}, by {basis}"
