"""What a timeline comes to: what was recorded, what each thread did, and which operators other work held up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfsuite.records.codec import plain_fields
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventFlag, EventKind, Events, ThreadState, TracedThread
from perfsuite.report.sheet import Sheet
from perfsuite.trace.timeline.preemption import HeldUpOperator, Preemption, held_up_operators, preemptions
from perfsuite.trace.timeline.tracks import printable, thread_text
from perfsuite.units import format_count, format_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadTimes:
    """What one thread did; times of states are None where nobody recorded states."""

    thread: TracedThread
    n_operators: int
    operators_ns: int
    running_ns: int | None
    runnable_ns: int | None
    idle_ns: int | None
    #: How often it went on on another processor; None where nobody recorded states.
    n_migrations: int | None
    n_preemptions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineSummary:
    """A trace in a few numbers."""

    recorder: str
    n_events: int
    n_lost: int
    #: From the first start to the last end; None of an empty trace.
    span_ns: int | None
    #: By kind, those that there are.
    n_by_kind: tuple[tuple[str, int], ...]
    threads: tuple[ThreadTimes, ...]
    preemptions: tuple[Preemption, ...]
    held_up: tuple[HeldUpOperator, ...]
    has_states: bool
    #: Whether times of operators have waiting in them: some starts or ends are those of a neighbour.
    has_waiting: bool
    cut: str | None
    problems: tuple[str, ...]


def timeline_summary(trace: EngineTrace) -> TimelineSummary:
    """Sum up a trace as its timeline shows it."""
    found = preemptions(trace)
    kinds = trace.events["kind"]
    counts = [(kind.name.lower(), int(np.count_nonzero(kinds == kind))) for kind in EventKind]
    states, operators = trace.of(EventKind.THREAD_STATE), trace.of(EventKind.OPERATOR)
    return TimelineSummary(
        recorder=trace.recorder.value,
        n_events=len(trace.events),
        n_lost=trace.n_lost,
        span_ns=_span_ns(trace.events),
        n_by_kind=tuple((name, count) for name, count in counts if count),
        threads=tuple(
            _thread_times(
                thread,
                operators[operators["thread"] == position],
                states[states["thread"] == position] if len(states) else None,
                sum(each.thread == thread for each in found),
            )
            for position, thread in enumerate(trace.threads)
        ),
        preemptions=found,
        held_up=held_up_operators(found),
        has_states=bool(len(states)),
        has_waiting=bool((operators["flags"] & (EventFlag.START_DERIVED | EventFlag.END_DERIVED)).any()),
        cut=trace.cut,
        problems=trace.problems,
    )


def _span_ns(events: Events) -> int | None:
    if not len(events):
        return None
    return int(max(events["start_ns"].max(), events["end_ns"].max()) - events["start_ns"].min())


def _thread_times(thread: TracedThread, operators: Events, states: Events | None, n_preemptions: int) -> ThreadTimes:
    running, runnable, idle = (
        None if states is None else states[states["value"] == state]
        for state in (ThreadState.RUNNING, ThreadState.RUNNABLE, ThreadState.IDLE)
    )
    return ThreadTimes(
        thread=thread,
        n_operators=len(operators),
        operators_ns=_total_ns(operators) or 0,
        running_ns=_total_ns(running),
        runnable_ns=_total_ns(runnable),
        idle_ns=_total_ns(idle),
        n_migrations=None if running is None else int(np.count_nonzero(np.diff(running["cpu"][running["cpu"] >= 0]))),
        n_preemptions=n_preemptions,
    )


def _total_ns(events: Events | None) -> int | None:
    if events is None:
        return None
    return int(np.maximum(events["end_ns"] - events["start_ns"], 0)[events["end_ns"] >= 0].sum())


#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1

_OF_TRACE = ("recorder", "n_events", "n_lost", "span_ns", "has_states", "has_waiting", "cut")
_OF_THREAD = (
    *("n_operators", "operators_ns", "running_ns", "runnable_ns", "idle_ns"),
    *("n_migrations", "n_preemptions"),
)
_HELD_UP = ("name", "op", "n_preemptions", "delay_ns", "held_up_ns", "longest_ns", "is_at_most")
_PREEMPTION = (
    *("cpu", "start_ns", "end_ns", "was_running", "name", "op", "graph", "node"),
    *("delay_ns", "held_up_ns", "is_at_most"),
)


def plain_timeline(summary: TimelineSummary) -> dict[str, Any]:
    """Return a summary, with all its pre-emptions."""
    return {
        "schema": SCHEMA,
        **plain_fields(summary, *_OF_TRACE),
        "n_by_kind": dict(summary.n_by_kind),
        "problems": list(summary.problems),
        "threads": [{**_thread(each.thread), **plain_fields(each, *_OF_THREAD)} for each in summary.threads],
        "held_up": [
            {**plain_fields(each, *_HELD_UP), "preempted": _tids(each.preempted), "waiting": _tids(each.waiting)}
            for each in summary.held_up
        ],
        "preemptions": [_preemption(each) for each in summary.preemptions],
    }


def _preemption(each: Preemption) -> dict[str, Any]:
    return {
        **_thread(each.thread),
        **plain_fields(each, *_PREEMPTION),
        "instead": None if each.instead is None else _thread(each.instead),
        "evaluation": None if each.evaluation == NOTHING else each.evaluation,
        "iteration": None if each.iteration == NOTHING else each.iteration,
        "waiting": _tids(each.waiting),
    }


def _thread(thread: TracedThread) -> dict[str, Any]:
    return {"tid": thread.tid, "thread_name": thread.name}


def _tids(threads: Sequence[TracedThread]) -> list[int]:
    return [each.tid for each in threads]


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
    yield from map(printable, summary.problems)
    if summary.has_waiting:
        yield "the time in operators has waiting for other threads in it: not every start and end was recorded"
    yield _preemption_line(summary)


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


def timeline_tables(summary: TimelineSummary, n_top: int = N_TOP) -> tuple[Sheet, ...]:
    """Return a table of the threads and, where there are any, of the operators held up and the longest pre-emptions."""
    times: dict[str, Callable[[ThreadTimes], object]] = {
        "thread": lambda each: thread_text(each.thread),
        ">operators": lambda each: each.n_operators,
        ">in operators": lambda each: format_ns(each.operators_ns),
        ">running": lambda each: format_ns(each.running_ns),
        ">runnable": lambda each: format_ns(each.runnable_ns),
        ">idle": lambda each: format_ns(each.idle_ns),
        ">migrations": lambda each: each.n_migrations,
        ">pre-empted": lambda each: each.n_preemptions if summary.has_states else None,
    }
    threads = Sheet.of(summary.threads, times, "Threads")
    if not summary.held_up:
        return (threads,)
    held_up: dict[str, Callable[[HeldUpOperator], object]] = {
        "operator": lambda each: printable(f"{each.op} {each.name}"),
        ">times": lambda each: each.n_preemptions,
        ">on its thread": lambda each: format_ns(each.delay_ns),
        ">longest": lambda each: format_ns(each.longest_ns),
        ">as a whole": lambda each: f"{'at most ' if each.is_at_most else ''}{format_ns(each.held_up_ns)}",
        ">pre-empted": lambda each: ", ".join(map(str, _tids(each.preempted))) or None,
        ">waited at the barrier": lambda each: ", ".join(map(str, _tids(each.waiting))) or None,
    }
    delays: dict[str, Callable[[Preemption], object]] = {
        "operator": lambda each: printable(f"{each.op} {each.name}"),
        ">thread": lambda each: thread_text(each.thread),
        ">CPU": lambda each: each.cpu,
        ">iteration": lambda each: None if each.iteration < 0 else each.iteration,
        ">delay": lambda each: format_ns(each.delay_ns),
        ">ran instead": lambda each: "another program" if each.instead is None else thread_text(each.instead),
    }
    longest = sorted(summary.preemptions, key=lambda each: -each.delay_ns)
    tops = [f": the first {n_top} of {n}" if n > n_top else "" for n in (len(summary.held_up), len(longest))]
    return (
        threads,
        Sheet.of(summary.held_up[:n_top], held_up, f"Operators held up by other work{tops[0]}"),
        Sheet.of(longest[:n_top], delays, f"Pre-emptions by their delay{tops[1]}"),
    )
