"""Calls that began and ended."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from perfsuite.records.bpf_log_file import BpfKind, read_bpf_log
from perfsuite.records.engine_trace import NOTHING, EventFlag
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.bpf_logs import BpfLogBuilder
from perfsuite.testing.engine_traces import EPOCH_NS
from perfsuite.trace.ebpf.intervals import Intervals, LevelChanges, intervals_of


def test_a_level_is_switched_only_when_it_changes_itself() -> None:
    steps = [TraceLevel.TOKEN, TraceLevel.TOKEN | TraceLevel.GRAPH, TraceLevel.GRAPH, TraceLevel.GRAPH]
    changes = LevelChanges(
        start_ns=0,
        first=int(TraceLevel.TOKEN | TraceLevel.THREADS),
        ns=np.asarray([10, 20, 30, 40]),
        levels=np.asarray([int(each) for each in steps]),
        flags=np.zeros(4, np.uint8),
    )
    switched = {level: changes.switched(level).tolist() for level in (TraceLevel.TOKEN, TraceLevel.GRAPH)}
    assert switched == {TraceLevel.TOKEN: [30], TraceLevel.GRAPH: [20]}
    assert changes.switched(TraceLevel.THREADS).tolist() == [10]
    assert changes.all == TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.THREADS


def intervals(tmp_path: Path, *records: tuple[BpfKind, int, int]) -> Intervals:
    log = BpfLogBuilder()
    for kind, ns, tid in records:
        log.add(kind, ns, tid=tid)
    return intervals_of(read_bpf_log(log.write(tmp_path / "log")), BpfKind.TOKEN_BEGIN, BpfKind.TOKEN_END)


def spans(found: Intervals) -> list[tuple[int, int]]:
    ends = np.where(found.end_ns == NOTHING, NOTHING, found.end_ns - EPOCH_NS)
    return list(zip((found.start_ns - EPOCH_NS).tolist(), ends.tolist(), strict=True))


BEGIN, END = BpfKind.TOKEN_BEGIN, BpfKind.TOKEN_END


def test_each_end_belongs_to_the_begin_before_it(tmp_path: Path) -> None:
    found = intervals(
        tmp_path, (BEGIN, 10, 1), (BEGIN, 15, 2), (END, 30, 2), (END, 20, 1), (BEGIN, 40, 1), (END, 50, 1)
    )
    assert (spans(found), found.tid.tolist()) == ([(10, 20), (15, 30), (40, 50)], [1, 2, 1])
    assert found.flags.tolist() == [0, 0, 0]
    assert found.overlaps


def test_what_was_not_seen_of_a_call_is_derived(tmp_path: Path) -> None:
    """A first end without a begin is of a call under way; a missing end is the thread's next begin at most."""
    found = intervals(tmp_path, (END, 20, 1), (BEGIN, 30, 1), (END, 40, 1), (END, 60, 1))
    assert (spans(found), found.flags.tolist()) == ([(0, 20), (30, 40)], [EventFlag.CUT, 0])
    assert not found.overlaps
    found = intervals(tmp_path, (BEGIN, 10, 1), (BEGIN, 30, 1), (END, 40, 1), (BEGIN, 50, 1))
    assert spans(found) == [(10, NOTHING), (30, 40), (50, NOTHING)]
    assert found.flags.tolist() == [EventFlag.CUT, 0, EventFlag.CUT]
    assert found.containing(EPOCH_NS + np.array([5, 20, 35, 45, 99])).tolist() == [NOTHING, 0, 1, NOTHING, 2]


def test_moments_may_ask_for_their_own_thread(tmp_path: Path) -> None:
    """Of calls that overlap a thread's own may be another; without records nothing contains anything."""
    found = intervals(tmp_path, (BEGIN, 10, 1), (BEGIN, 15, 2), (END, 30, 2), (END, 40, 1))
    moment = EPOCH_NS + np.array([20, 20, 20])
    assert found.containing(moment).tolist() == [1, 1, 1]
    assert found.containing(moment, np.array([1, 2, 3])).tolist() == [0, 1, NOTHING]
    found = intervals(tmp_path)
    assert (found.size, found.containing(np.array([EPOCH_NS])).tolist()) == (0, [NOTHING])
