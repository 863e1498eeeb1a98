"""When the eBPF recorder recorded what."""

from __future__ import annotations

import numpy as np

from perfsuite.records.trace_levels import TraceLevel
from perfsuite.trace.ebpf.levels import LevelChanges


def test_a_level_is_switched_only_when_it_changes_itself() -> None:
    """Other levels that go on or off at a moment are no change of this one."""
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
