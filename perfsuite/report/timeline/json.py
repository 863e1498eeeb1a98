"""What a timeline comes to as JSON values; docs/trace-format.md describes the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfsuite.records.engine_trace import NOTHING, TracedThread
from perfsuite.report.plain_fields import plain_fields
from perfsuite.report.timeline.summary import TimelineSummary
from perfsuite.trace.timeline.preemption import HeldUpOperator, Preemption

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
