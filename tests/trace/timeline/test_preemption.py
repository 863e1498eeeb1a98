"""Operators that other work held up."""

from __future__ import annotations

import pytest

from perfsuite.records.engine_trace import EventFlag, EventKind, Events, ThreadState
from perfsuite.testing.engine_traces import EPOCH_NS, engine_trace, event
from perfsuite.trace.timeline.preemption import Preemption, held_up_operators, preemptions


def part(thread: int, start_ns: int, end_ns: int, *, node: int = 1, flags: int = 0) -> Events:
    return event(EventKind.OPERATOR, start_ns, end_ns, thread=thread, graph=0, node=node, evaluation=0, flags=flags)


def wait(thread: int, start_ns: int, end_ns: int, cpu: int = 1) -> Events:
    return event(EventKind.THREAD_STATE, start_ns, end_ns, thread=thread, value=ThreadState.RUNNABLE, cpu=cpu)


def running(thread: int, start_ns: int, end_ns: int, cpu: int = 1) -> Events:
    return event(EventKind.THREAD_STATE, start_ns, end_ns, thread=thread, value=ThreadState.RUNNING, cpu=cpu)


def only(*events: Events) -> Preemption:
    (found,) = preemptions(engine_trace(events))
    return found


def test_a_pre_empted_thread_names_its_operator_and_who_waited() -> None:
    """Thread 1 loses 40 of its 100 ns; thread 0 was done at 60, so all of the 40 are waited for at the barrier."""
    found = only(part(0, 0, 60), part(1, 0, 100), running(1, 0, 30), wait(1, 30, 70), running(1, 70, 100))
    assert (found.name, found.op, found.node) == ("Qcur-0", "MUL_MAT", 1)
    assert (found.thread.tid, found.cpu, found.was_running) == (4712, 1, True)
    assert (found.start_ns - EPOCH_NS, found.end_ns - EPOCH_NS) == (30, 70)
    assert (found.delay_ns, found.held_up_ns, found.is_at_most) == (40, 40, False)
    assert [each.tid for each in found.waiting] == [4711]
    assert found.instead is None


@pytest.mark.parametrize(
    ("other_end_ns", "held_up_ns", "waiting"), [(60, 40, [4711]), (75, 25, [4711]), (100, 0, []), (120, 0, [])]
)
def test_what_another_thread_took_anyway_is_no_delay(other_end_ns: int, held_up_ns: int, waiting: list[int]) -> None:
    """The whole is held up only by what its last thread ended behind the others; else nobody waits."""
    found = only(part(0, 0, other_end_ns), part(1, 0, 100), wait(1, 30, 70))
    assert (found.delay_ns, found.held_up_ns, [each.tid for each in found.waiting]) == (40, held_up_ns, waiting)


def test_only_what_is_due_is_held_up() -> None:
    found = only(part(0, 100, 140), part(1, 150, 190), wait(1, 80, 150))
    assert (found.delay_ns, found.held_up_ns) == (50, 50)
    assert preemptions(engine_trace([part(0, 0, 100), part(1, 0, 60), wait(1, 60, 100)])) == ()
    later = [part(0, 110, 150, node=2), part(1, 110, 150, node=2)]
    assert preemptions(engine_trace([part(0, 0, 100), part(1, 0, 60), wait(1, 65, 110), *later])) == ()
    idle = event(EventKind.THREAD_STATE, 10, 20, thread=1, value=ThreadState.IDLE)
    assert preemptions(engine_trace([part(1, 0, 100), wait(0, 10, 20), running(1, 20, 30), idle])) == ()


def test_several_waits_share_what_they_held_up() -> None:
    """What the last thread lost counts: 20 and 30 ns come to 35; 40 and 10 with ends 100 and 90 to 20."""
    found = preemptions(engine_trace([part(0, 0, 65), part(1, 0, 100), wait(1, 10, 30), wait(1, 50, 80)]))
    assert ([each.delay_ns for each in found], [each.held_up_ns for each in found]) == ([20, 30], [20, 15])
    (total,) = held_up_operators(found)
    assert (total.n_preemptions, total.delay_ns, total.held_up_ns, total.longest_ns) == (2, 50, 35, 30)
    found = preemptions(engine_trace([part(0, 0, 90), part(1, 0, 100), wait(0, 5, 15, cpu=0), wait(1, 30, 70)]))
    assert [(each.thread.tid, each.delay_ns, each.held_up_ns) for each in found] == [(4711, 10, 0), (4712, 40, 20)]


def test_without_ends_the_delay_is_a_bound() -> None:
    """The others' waiting is in the time; 90 to 130 is 10 ns of one operator and 30 of the next."""
    derived = EventFlag.END_DERIVED
    parts = [part(thread, 0, 105 + thread, flags=derived) for thread in (0, 1)]
    parts += [part(thread, 105 + thread, 150, node=2, flags=derived) for thread in (0, 1)]
    found = only(*parts, wait(1, 30, 70))
    assert (found.name, found.delay_ns, found.held_up_ns, found.is_at_most) == ("Qcur-0", 40, 40, True)
    parts = [part(thread, 0, 100 + 30 * thread, flags=derived) for thread in (0, 1)]
    parts += [part(thread, 100 + 30 * thread, 170, node=2, flags=derived) for thread in (0, 1)]
    found = preemptions(engine_trace([*parts, wait(1, 90, 130)]))
    assert [(each.name, each.delay_ns) for each in found] == [("Qcur-0", 10), ("Kcur-0", 30)]


def test_another_thread_of_the_program_is_named() -> None:
    found = only(part(1, 0, 100), wait(1, 30, 70, cpu=0), running(0, 20, 90, cpu=0))
    assert found.instead is not None
    assert found.instead.tid == 4711
    idle = event(EventKind.THREAD_STATE, 0, 30, thread=1, value=ThreadState.IDLE)
    assert only(part(1, 0, 100), idle, wait(1, 30, 70)).was_running is False
    assert only(part(1, 0, 100), wait(1, 30, 70)).was_running is None
    assert only(part(1, 0, 100), running(1, 0, 20), wait(1, 30, 70)).was_running is None
