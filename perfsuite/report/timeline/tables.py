"""A timeline on the terminal: what was recorded, what each thread did, and which operators other work held up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Column, Table

from perfsuite.records.engine_trace import TracedThread
from perfsuite.report.timeline.summary import TimelineSummary
from perfsuite.trace.timeline.preemption import HeldUpOperator, Preemption
from perfsuite.trace.timeline.tracks import printable, thread_text
from perfsuite.units import format_count, format_ns

N_TOP = 12


def timeline_lines(summary: TimelineSummary) -> Iterator[str]:
    """Yield what was recorded, what is missing from it, and what pre-emption came to."""
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in summary.n_by_kind)
    span = "" if summary.span_ns is None else f" over {format_ns(summary.span_ns)}"
    yield f"{format_count(summary.n_events, 'event')} by the {summary.recorder} recorder{span}: {counts or 'none'}"
    if summary.n_lost:
        yield f"{format_count(summary.n_lost, 'event')} lost"
    if summary.cut is not None:
        yield printable(f"the trace breaks off: {summary.cut}")
    yield from (printable(each) for each in summary.problems)
    if summary.has_waiting:
        yield "the time in operators has waiting for other threads in it: not every start and end was recorded"
    yield _preemption_line(summary)


def timeline_tables(summary: TimelineSummary, n_top: int = N_TOP) -> tuple[Table, ...]:
    """Return a table of the threads and, where there are any, of the operators held up and the longest pre-emptions."""
    tables = [_thread_table(summary)]
    if summary.held_up:
        tables += [_held_up_table(summary.held_up, n_top), _preemption_table(summary.preemptions, n_top)]
    return tuple(tables)


def _preemption_line(summary: TimelineSummary) -> str:
    if not summary.has_states:
        return "pre-emption: not known, states of threads were not recorded"
    if not summary.preemptions:
        return "pre-emption: no operator waited for a processor"
    held_up_ns = sum(each.held_up_ns for each in summary.held_up)
    most = "at most " if any(each.is_at_most for each in summary.held_up) else ""
    cpus = sorted({each.cpu for each in summary.preemptions if each.cpu is not None})
    where = f" on CPU {', '.join(map(str, cpus))}" if cpus else ""
    woken = sum(each.was_running is False for each in summary.preemptions)
    after = f", {woken} of them after a sleep" if woken else ""
    times = format_count(len(summary.preemptions), "time")
    return (
        f"pre-emption: operators waited {times} for a processor{where}{after}; "
        f"that held up {format_count(len(summary.held_up), 'operator')} by {most}{format_ns(held_up_ns)} in all"
    )


def _thread_table(summary: TimelineSummary) -> Table:
    names = ("operators", "in operators", "running", "runnable", "idle", "migrations", "pre-empted")
    table = _table("Threads", Column("thread", overflow="fold"), *names)
    for each in summary.threads:
        table.add_row(
            _thread(each.thread),
            str(each.n_operators),
            *map(format_ns, (each.operators_ns, each.running_ns, each.runnable_ns, each.idle_ns)),
            "-" if each.n_migrations is None else str(each.n_migrations),
            str(each.n_preemptions) if summary.has_states else "-",
        )
    return table


def _held_up_table(found: Sequence[HeldUpOperator], n_top: int) -> Table:
    title = f"Operators held up by other work{_top(len(found), n_top)}"
    names = ("times", "on its thread", "longest", "as a whole")
    table = _table(title, Column("operator", overflow="fold"), *names, "pre-empted", "waited at the barrier")
    for each in found[:n_top]:
        table.add_row(
            escape(printable(f"{each.op} {each.name}")),
            str(each.n_preemptions),
            format_ns(each.delay_ns),
            format_ns(each.longest_ns),
            f"{'at most ' if each.is_at_most else ''}{format_ns(each.held_up_ns)}",
            _threads(each.preempted),
            _threads(each.waiting),
        )
    return table


def _preemption_table(found: Sequence[Preemption], n_top: int) -> Table:
    title = f"Pre-emptions by their delay{_top(len(found), n_top)}"
    table = _table(title, Column("operator", overflow="fold"), "thread", "CPU", "iteration", "delay", "ran instead")
    for each in sorted(found, key=lambda each: -each.delay_ns)[:n_top]:
        table.add_row(
            escape(printable(f"{each.op} {each.name}")),
            _thread(each.thread),
            "-" if each.cpu is None else str(each.cpu),
            "-" if each.iteration < 0 else str(each.iteration),
            format_ns(each.delay_ns),
            "another program" if each.instead is None else _thread(each.instead),
        )
    return table


def _top(n_all: int, n_top: int) -> str:
    return f": the first {n_top} of {n_all}" if n_all > n_top else ""


def _threads(threads: Sequence[TracedThread]) -> str:
    return ", ".join(str(each.tid) for each in threads) or "-"


def _thread(thread: TracedThread) -> str:
    return escape(thread_text(thread))


def _table(title: str, first: Column, *names: str) -> Table:
    columns = [first, *(Column(name, justify="right") for name in names)]
    return Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)
