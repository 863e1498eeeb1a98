"""Pre-emption: which operators were held up because a thread could have run and had no processor.

An operator that the threads t enter at s_t and leave at e_t is due on each of them from the first entry on. A thread
that is runnable, and not running, for d_t of the time from min s to its e_t ends its part so much later. All threads
wait for the last one at the barrier, so the operator as a whole is held up by

    held_up = max e_t - max (e_t - d_t)        ns

and the threads that are not the last one wait so much longer. Where a recorder does not see ends, an e_t has the
waiting in it, and all that is known is held_up <= max d_t.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import (
    NOTHING,
    EngineTrace,
    EventFlag,
    EventKind,
    Events,
    Ints,
    ThreadState,
    TracedThread,
)
from perfsuite.trace.statistics.operator_runs import operator_events


class Occupants:
    """The threads of a trace that ran, by processor."""

    def __init__(self, trace: EngineTrace) -> None:
        states = trace.of(EventKind.THREAD_STATE)
        running = states[states["value"] == ThreadState.RUNNING]
        self._threads = trace.threads
        self._by_cpu = {cpu: running[running["cpu"] == cpu] for cpu in np.unique(running["cpu"]).tolist() if cpu >= 0}

    def of(self, wait: np.void) -> TracedThread | None:
        """Return another thread of the program that ran on the processor that an event of a thread's state waits for.

        None where none did: the processor was another program's, or nobody knows.
        """
        running: Events | None = self._by_cpu.get(int(wait["cpu"]))
        if running is None:
            return None
        last = int(np.searchsorted(running["start_ns"], wait["end_ns"])) - 1
        while last >= 0 and running["end_ns"][last] > wait["start_ns"]:
            thread = int(running["thread"][last])
            if thread != wait["thread"]:
                return self._threads[thread]
            last -= 1
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class DueParts:
    """Each operator on each thread, sorted by run (operator of an evaluation), with when it was due."""

    #: Position among the trace's events.
    at: Ints
    run: Ints
    thread: Ints
    due_ns: Ints
    end_ns: Ints
    is_derived: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Positions of a part and of a wait, and how long the one waited because of the other."""

    part: int
    wait: int
    delay_ns: int


def due_parts(trace: EngineTrace) -> DueParts:
    """Return all parts whose ends are known.

    Where an end is only where the thread's next operator begins, it is at the latest where the next run begins on any
    thread: by then the barrier was open.
    """
    at = operator_events(trace, EventKind.OPERATOR)
    events = trace.events[at]
    evaluation = events["evaluation"].astype(np.int64) * (len(trace.graphs) + 1) + events["graph"]
    key = (evaluation << 32) + events["node"]
    order = np.argsort(key, kind="stable")
    at, events, key = at[order], events[order], key[order]
    run = np.cumsum(np.diff(key, prepend=key[:1]) != 0)
    first = np.flatnonzero(np.diff(run, prepend=-1))
    if not len(first):
        return DueParts(at=at, run=run, thread=at, due_ns=at, end_ns=at, is_derived=at > 0)
    due_ns = np.minimum.reduceat(events["start_ns"], first)
    is_derived = events["flags"] & EventFlag.END_DERIVED != 0
    order = np.argsort(due_ns, kind="stable")
    next_due_ns = np.full(len(due_ns), np.iinfo(np.int64).max)
    next_due_ns[order[:-1]] = due_ns[order[1:]]
    end_ns = np.where(is_derived, np.minimum(events["end_ns"], next_due_ns[run]), events["end_ns"])
    thread = events["thread"].astype(np.int64)
    return DueParts(at=at, run=run, thread=thread, due_ns=due_ns[run], end_ns=end_ns, is_derived=is_derived)


def overlaps(parts: DueParts, waits: Events) -> Iterator[Overlap]:
    """Yield each wait's share of the time in which a part was due on the wait's thread."""
    for thread in np.unique(waits["thread"]).tolist():
        own = np.flatnonzero(parts.thread == thread)
        own = own[np.argsort(parts.due_ns[own], kind="stable")]
        due_ns, end_ns = parts.due_ns[own], np.maximum.accumulate(parts.end_ns[own])
        for wait in np.flatnonzero(waits["thread"] == thread).tolist():
            start, end = int(waits["start_ns"][wait]), int(waits["end_ns"][wait])
            low, high = int(np.searchsorted(end_ns, start, side="right")), int(np.searchsorted(due_ns, end))
            for part in own[low:high].tolist():
                delay = min(end, int(parts.end_ns[part])) - max(start, int(parts.due_ns[part]))
                if delay > 0:
                    yield Overlap(part=part, wait=wait, delay_ns=delay)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """A thread that was runnable and had no processor while an operator was due on it."""

    thread: TracedThread
    #: Where it waited; None where that is not known.
    cpu: int | None
    #: Of the whole wait, which may be longer than the operator.
    start_ns: int
    end_ns: int
    #: Whether it ran until the wait began: False after a sleep, None where that is not known.
    was_running: bool | None
    #: The thread of the same program that ran there meanwhile; None where it was another program's, or nobody knows.
    instead: TracedThread | None
    #: The tensor that the operator makes, and what it does.
    name: str
    op: str
    graph: int
    node: int
    evaluation: int
    iteration: int
    #: How much later the operator ended on this thread.
    delay_ns: int
    #: How much later it ended as a whole, and which threads waited at the barrier for so much longer.
    held_up_ns: int
    waiting: tuple[TracedThread, ...]
    #: Whether `held_up_ns` is the most that it can have been: the recorder did not see when operators ended.
    is_at_most: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldUpOperator:
    """One operator's pre-emptions in all evaluations."""

    name: str
    op: str
    n_preemptions: int
    delay_ns: int
    held_up_ns: int
    longest_ns: int
    #: Threads that were pre-empted, and threads that waited for them.
    preempted: tuple[TracedThread, ...]
    waiting: tuple[TracedThread, ...]
    is_at_most: bool


def preemptions(trace: EngineTrace) -> tuple[Preemption, ...]:
    """Return every wait for a processor that held up an operator on its thread, in the order of time."""
    waits = _waits(trace)
    parts = due_parts(trace)
    if not len(waits.events) or not len(parts.at):
        return ()
    occupants = Occupants(trace)
    by_run: dict[int, list[Overlap]] = {}
    for each in overlaps(parts, waits.events):
        by_run.setdefault(int(parts.run[each.part]), []).append(each)
    found = (each for members in by_run.values() for each in _of_run(trace, parts, waits, members, occupants))
    return tuple(sorted(found, key=lambda each: (each.start_ns, each.node)))


def held_up_operators(found: Sequence[Preemption]) -> tuple[HeldUpOperator, ...]:
    """Sum pre-emptions by the operator's name, the one that was held up the longest first."""
    by_name: dict[tuple[str, str], list[Preemption]] = {}
    for each in found:
        by_name.setdefault((each.name, each.op), []).append(each)
    summed = [_summed(name, op, members) for (name, op), members in by_name.items()]
    return tuple(sorted(summed, key=lambda each: (-each.held_up_ns, -each.delay_ns, each.name)))


def _summed(name: str, op: str, members: Sequence[Preemption]) -> HeldUpOperator:
    return HeldUpOperator(
        name=name,
        op=op,
        n_preemptions=len(members),
        delay_ns=sum(each.delay_ns for each in members),
        held_up_ns=sum(each.held_up_ns for each in members),
        longest_ns=max(each.delay_ns for each in members),
        preempted=tuple(dict.fromkeys(each.thread for each in members)),
        waiting=tuple(dict.fromkeys(thread for each in members for thread in each.waiting)),
        is_at_most=any(each.is_at_most for each in members),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waits:
    """The events of threads that could have run, and the states that each of them was in before, NOTHING if unknown."""

    events: Events
    before: Ints


def _waits(trace: EngineTrace) -> _Waits:
    states = trace.of(EventKind.THREAD_STATE)
    states = states[np.argsort(states["thread"], kind="stable")]
    before = np.full(len(states), NOTHING, dtype=np.int64)
    follows = (states["thread"][1:] == states["thread"][:-1]) & (states["start_ns"][1:] == states["end_ns"][:-1])
    before[1:] = np.where(follows, states["value"][:-1], NOTHING)
    chosen = (states["value"] == ThreadState.RUNNABLE) & (states["end_ns"] > states["start_ns"])
    return _Waits(events=states[chosen], before=before[chosen])


def _of_run(
    trace: EngineTrace, parts: DueParts, waits: _Waits, members: list[Overlap], occupants: Occupants
) -> Iterator[Preemption]:
    """Yield the pre-emptions of one run; what it was held up by is that of its last thread."""
    run = parts.run[members[0].part]
    low, high = np.searchsorted(parts.run, (run, run + 1))
    delay_ns = np.zeros(high - low, dtype=np.int64)
    for each in members:
        delay_ns[each.part - low] += each.delay_ns
    end_ns = parts.end_ns[low:high]
    is_at_most = bool(parts.is_derived[low:high].any())
    last = int((delay_ns if is_at_most else end_ns).argmax())
    left_ns = int(delay_ns.max()) if is_at_most else int(end_ns.max() - (end_ns - delay_ns).max())
    threads = parts.thread[low:high].tolist()
    for each in members:
        place = each.part - low
        held_up_ns = min(each.delay_ns, left_ns) if place == last else 0
        left_ns -= held_up_ns
        event, state, before = trace.events[parts.at[each.part]], waits.events[each.wait], int(waits.before[each.wait])
        node = trace.graphs[event["graph"]][event["node"]]
        yield Preemption(
            thread=trace.threads[threads[place]],
            cpu=None if state["cpu"] == NOTHING else int(state["cpu"]),
            start_ns=int(state["start_ns"]),
            end_ns=int(state["end_ns"]),
            was_running=None if before == NOTHING else before == ThreadState.RUNNING,
            instead=occupants.of(state),
            name=node.tensor.name,
            op=node.ops,
            graph=int(event["graph"]),
            node=int(event["node"]),
            evaluation=int(event["evaluation"]),
            iteration=int(event["iteration"]),
            delay_ns=each.delay_ns,
            held_up_ns=held_up_ns,
            waiting=tuple(trace.threads[other] for other in threads if held_up_ns and other != threads[place]),
            is_at_most=is_at_most,
        )
