"""Calls on their way between processes."""

from __future__ import annotations

import json

from perfsuite.records.call_trace import CallTrace, TracedCall, TracedFunction


def test_a_trace_comes_back_as_it_was() -> None:
    """Every function, batches that are known and those that are not, survive JSON."""
    calls = tuple(
        TracedCall(function=function, entry_ns=number, exit_ns=number + 7, n_tokens=number or None)
        for number, function in enumerate(TracedFunction)
    )
    trace = CallTrace(tracer="uprobes", calls=calls, n_lost=3, monotonic_offset_ns=-5)
    assert CallTrace.from_plain(json.loads(json.dumps(trace.to_plain()))) == trace
    assert {call.duration_ns for call in trace.calls} == {7}
