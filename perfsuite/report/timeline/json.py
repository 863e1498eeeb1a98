"""What a timeline comes to as JSON values; docs/trace-format.md describes the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfsuite.records.engine_trace import NOTHING, TracedThread
from perfsuite.report.timeline.summary import ThreadTimes, TimelineSummary
from perfsuite.trace.timeline.preemption import HeldUpOperator, Preemption

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1


def plain_timeline(summary: TimelineSummary) -> dict[str, Any]:
    """Return a summary, with all its pre-emptions."""
    return {
        "schema": SCHEMA,
        "recorder": summary.recorder,
        "n_events": summary.n_events,
        "n_lost": summary.n_lost,
        "span_ns": summary.span_ns,
        "n_by_kind": dict(summary.n_by_kind),
        "has_states": summary.has_states,
        "has_waiting": summary.has_waiting,
        "cut": summary.cut,
        "problems": list(summary.problems),
        "threads": [_thread_times(each) for each in summary.threads],
        "held_up": [_held_up(each) for each in summary.held_up],
        "preemptions": [_preemption(each) for each in summary.preemptions],
    }


def _thread_times(each: ThreadTimes) -> dict[str, Any]:
    return {
        **_thread(each.thread),
        "n_operators": each.n_operators,
        "operators_ns": each.operators_ns,
        "running_ns": each.running_ns,
        "runnable_ns": each.runnable_ns,
        "idle_ns": each.idle_ns,
        "n_migrations": each.n_migrations,
        "n_preemptions": each.n_preemptions,
    }


def _held_up(each: HeldUpOperator) -> dict[str, Any]:
    return {
        "name": each.name,
        "op": each.op,
        "n_preemptions": each.n_preemptions,
        "delay_ns": each.delay_ns,
        "held_up_ns": each.held_up_ns,
        "longest_ns": each.longest_ns,
        "is_at_most": each.is_at_most,
        "preempted": _tids(each.preempted),
        "waiting": _tids(each.waiting),
    }


def _preemption(each: Preemption) -> dict[str, Any]:
    return {
        **_thread(each.thread),
        "cpu": each.cpu,
        "start_ns": each.start_ns,
        "end_ns": each.end_ns,
        "was_running": each.was_running,
        "instead": None if each.instead is None else _thread(each.instead),
        "name": each.name,
        "op": each.op,
        "graph": each.graph,
        "node": each.node,
        "evaluation": _known(each.evaluation),
        "iteration": _known(each.iteration),
        "delay_ns": each.delay_ns,
        "held_up_ns": each.held_up_ns,
        "is_at_most": each.is_at_most,
        "waiting": _tids(each.waiting),
    }


def _thread(thread: TracedThread) -> dict[str, Any]:
    return {"tid": thread.tid, "thread_name": thread.name}


def _tids(threads: Sequence[TracedThread]) -> list[int]:
    return [each.tid for each in threads]


def _known(number: int) -> int | None:
    return None if number == NOTHING else number
