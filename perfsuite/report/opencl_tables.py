"""OpenCL commands of a program on the terminal: what was counted, the top kernels, and when the device was idle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.markup import escape
from rich.table import Column, Table

from perfsuite.records.opencl_commands import CommandType
from perfsuite.report.opencl_summary import DeviceSummary, OpenClSummary
from perfsuite.trace.opencl.device_clock import ClockBasis, DeviceClock
from perfsuite.trace.opencl.kernel_statistics import KernelStatistics, Spread
from perfsuite.trace.opencl.stamps import ANOMALY_WORDS
from perfsuite.units import format_count, format_ns

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


def kernel_table(summary: OpenClSummary, n_top: int) -> Table:
    """Show the kernels with the longest totals."""
    columns = ("n", "total", "share", "median", "p95", "tick", "queueing", "dispatch", "occupied")
    table = _table(
        Column("kernel", overflow="fold"), *(Column(each, justify="right", no_wrap=True) for each in columns)
    )
    for each in summary.kernels[:n_top]:
        table.add_row(
            escape(each.name),
            f"{each.n} of {each.n + each.n_left_out}" if each.n_left_out else str(each.n),
            _total(each.execution),
            f"{each.share_ratio:.1%}" if each.execution else "-",
            _median(each.execution),
            format_ns(each.execution.p95_ns if each.execution else None),
            _tick_text(each),
            _median(each.queueing),
            _median(each.dispatch),
            _median(each.occupied),
        )
    return table


def _total(spread: Spread | None) -> str:
    return format_ns(spread.total_ns if spread else None)


def _median(spread: Spread | None) -> str:
    return format_ns(spread.median_ns if spread else None)


def _tick_text(kernel: KernelStatistics) -> str:
    """Say what the tick of the clock leaves unknown of a kernel's mean."""
    return "-" if kernel.tick_error_ratio is None else f"{100 * kernel.tick_error_ratio:.2g} %"


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


def gap_table(device: DeviceSummary) -> Table:
    """Show the longest gaps of a device, their begin counted from its first command's."""
    table = _table(
        *(Column(name, justify="right", no_wrap=True) for name in ("longest gaps", "begin at")),
        *(Column(name, overflow="fold") for name in ("after", "before")),
    )
    first_ns = device.whole.start_ns if device.whole else 0
    for each in device.longest_gaps or ():
        table.add_row(
            format_ns(each.gap.duration_ns),
            format_ns(each.gap.start_ns - first_ns),
            escape(each.preceding),
            escape(each.following),
        )
    return table


def _table(*columns: Column) -> Table:
    return Table(*columns, box=None, pad_edge=False)


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
