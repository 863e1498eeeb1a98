"""Thread states from scheduling records."""

from __future__ import annotations

from pathlib import Path

from perfsuite.records.bpf_log import BpfKind
from perfsuite.records.bpf_log_file import read_bpf_log
from perfsuite.records.engine_trace import NOTHING, EventFlag, ThreadState
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.bpf_logs import MAIN_TID, BpfLogBuilder
from perfsuite.testing.engine_traces import EPOCH_NS
from perfsuite.trace.ebpf.intervals import level_changes
from perfsuite.trace.ebpf.threads import thread_states

RUNNING, RUNNABLE, IDLE = ThreadState
States = list[tuple[int, int, int, int, int]]


def states(tmp_path: Path, log: BpfLogBuilder) -> States:
    """Return start, end, state, processor and flags of the main thread's states."""
    read = read_bpf_log(log.write(tmp_path / "log"))
    found = thread_states(read, level_changes(read), EPOCH_NS + 1000)
    rows = found[["start_ns", "end_ns", "value", "cpu", "flags", "thread"]].tolist()
    return sorted((start - EPOCH_NS, end - EPOCH_NS, *rest) for start, end, *rest, tid in rows if tid == MAIN_TID)


def test_states_follow_prev_state(tmp_path: Path) -> None:
    """A thread that is switched out with prev_state 0 could still run; with any other it sleeps until it is woken."""
    log = BpfLogBuilder()
    log.add(BpfKind.SWITCH_IN, 100, cpu=1)
    log.add(BpfKind.SWITCH_OUT, 200, cpu=1, value=0)
    log.add(BpfKind.SWITCH_IN, 300, cpu=0)
    log.add(BpfKind.SWITCH_OUT, 400, cpu=0, value=1)
    log.add(BpfKind.WOKEN, 500, cpu=1)
    log.add(BpfKind.SWITCH_IN, 600, cpu=1)
    assert states(tmp_path, log) == [
        (100, 200, RUNNING, 1, 0),
        (200, 300, RUNNABLE, 1, 0),
        (300, 400, RUNNING, 0, 0),
        (400, 500, IDLE, NOTHING, 0),
        (500, 600, RUNNABLE, NOTHING, 0),
        (600, 1000, RUNNING, 1, EventFlag.CUT),
    ]


def test_a_thread_that_leaves_first_was_running(tmp_path: Path) -> None:
    """Before its first record, a thread that is switched out ran since the recorder came."""
    log = BpfLogBuilder()
    log.add(BpfKind.SWITCH_OUT, 200, cpu=1, value=2)
    assert states(tmp_path, log) == [(0, 200, RUNNING, 1, EventFlag.CUT), (200, 1000, IDLE, NOTHING, EventFlag.CUT)]


def test_waking_who_is_awake_changes_nothing(tmp_path: Path) -> None:
    """A wakeup of a running or runnable thread, and a second one of an idle thread, begin no state."""
    log = BpfLogBuilder()
    log.add(BpfKind.SWITCH_IN, 100)
    log.add(BpfKind.WOKEN, 150)
    log.add(BpfKind.SWITCH_OUT, 200, value=0x100)
    log.add(BpfKind.WOKEN, 250)
    log.add(BpfKind.SWITCH_IN, 300)
    log.add(BpfKind.SWITCH_OUT, 400, value=1)
    log.add(BpfKind.WOKEN, 500)
    log.add(BpfKind.WOKEN, 550)
    found = states(tmp_path, log)
    assert [(start, state) for start, _, state, _, _ in found] == [
        (100, RUNNING),
        (200, RUNNABLE),
        (300, RUNNING),
        (400, IDLE),
        (500, RUNNABLE),
    ]


def test_a_state_ends_when_threads_are_no_longer_recorded(tmp_path: Path) -> None:
    """What a thread does while nobody looks is not known."""
    log = BpfLogBuilder()
    log.add(BpfKind.SWITCH_IN, 100)
    log.add(BpfKind.LEVELS, 300, subject=int(TraceLevel.TOKEN), flags=1)
    log.add(BpfKind.LEVELS, 600, subject=0xFF, flags=1)
    log.add(BpfKind.SWITCH_OUT, 700, value=0)
    assert [row[:3] for row in states(tmp_path, log)] == [(100, 300, RUNNING), (700, 1000, RUNNABLE)]


def test_threads_are_told_apart(tmp_path: Path) -> None:
    """Another thread's records end no state of this one."""
    log = BpfLogBuilder()
    log.add(BpfKind.SWITCH_IN, 100)
    log.add(BpfKind.SWITCH_IN, 150, tid=MAIN_TID + 1)
    log.add(BpfKind.SWITCH_OUT, 170, tid=MAIN_TID + 1, value=1)
    log.add(BpfKind.SWITCH_OUT, 200, value=1)
    assert [row[:3] for row in states(tmp_path, log)] == [(100, 200, RUNNING), (200, 1000, IDLE)]
