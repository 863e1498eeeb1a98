"""Recorded events that are built."""

from __future__ import annotations

from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import EngineRecord
from perfsuite.testing.engine_records import evaluation


def test_evaluations_are_read_as_they_were_built() -> None:
    """Launch, entry, graph and ends are those that were asked for."""
    events = evaluation(5, 6, 9, first_start_ns=4) + evaluation(18, 25, graph=1)
    found = evaluations_of(EngineRecord(engine_version="", spans=(), graphs=(), n_dropped=0, events=events))
    assert (found.graph.tolist(), found.launch_ns.tolist(), found.first_start_ns.tolist()) == ([0, 1], [5, 18], [4, -1])
    assert (found.ends_ns.tolist(), found.n_ends.tolist()) == ([6, 9, 25], [2, 1])
