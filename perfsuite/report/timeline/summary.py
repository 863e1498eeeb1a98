"""What a timeline comes to: what was recorded, what each thread did, and which operators other work held up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfsuite.records.codec import plain_fields
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventFlag, EventKind, Events, ThreadState, TracedThread
from perfsuite.trace.timeline.preemption import HeldUpOperator, Preemption, held_up_operators, preemptions


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
    return ThreadTimes(
        thread=thread,
        n_operators=len(operators),
        operators_ns=_total_ns(operators),
        running_ns=_state_ns(states, ThreadState.RUNNING),
        runnable_ns=_state_ns(states, ThreadState.RUNNABLE),
        idle_ns=_state_ns(states, ThreadState.IDLE),
        n_migrations=None if states is None else _migrations(states),
        n_preemptions=n_preemptions,
    )


def _state_ns(states: Events | None, state: ThreadState) -> int | None:
    return None if states is None else _total_ns(states[states["value"] == state])


def _total_ns(events: Events) -> int:
    return int(np.maximum(events["end_ns"] - events["start_ns"], 0)[events["end_ns"] >= 0].sum())


def _migrations(states: Events) -> int:
    cpus = states["cpu"][(states["value"] == ThreadState.RUNNING) & (states["cpu"] >= 0)]
    return int(np.count_nonzero(np.diff(cpus)))


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
        "held_up": [_held_up(each) for each in summary.held_up],
        "preemptions": [_preemption(each) for each in summary.preemptions],
    }


def _held_up(each: HeldUpOperator) -> dict[str, Any]:
    return {**plain_fields(each, *_HELD_UP), "preempted": _tids(each.preempted), "waiting": _tids(each.waiting)}


def _preemption(each: Preemption) -> dict[str, Any]:
    return {
        **_thread(each.thread),
        **plain_fields(each, *_PREEMPTION),
        "instead": None if each.instead is None else _thread(each.instead),
        "evaluation": _known(each.evaluation),
        "iteration": _known(each.iteration),
        "waiting": _tids(each.waiting),
    }


def _thread(thread: TracedThread) -> dict[str, Any]:
    return {"tid": thread.tid, "thread_name": thread.name}


def _tids(threads: Sequence[TracedThread]) -> list[int]:
    return [each.tid for each in threads]


def _known(number: int) -> int | None:
    return None if number == NOTHING else number
