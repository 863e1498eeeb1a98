"""What a timeline comes to, as JSON."""

from __future__ import annotations

import json

from perfsuite.report.timeline.json import plain_timeline
from perfsuite.report.timeline.summary import timeline_summary
from perfsuite.testing.engine_traces import EPOCH_NS, engine_trace

from ...synthetic_timeline import busy_trace


def test_the_summary_is_there() -> None:
    """Threads, operators held up, and each pre-emption with its time and its operator."""
    plain = json.loads(json.dumps(plain_timeline(timeline_summary(busy_trace())), allow_nan=False))
    assert plain["n_by_kind"]["kernel"] == 6
    assert [each["tid"] for each in plain["threads"]] == [4711, 4712]
    assert plain["held_up"][0]["name"] == "Qcur-0"
    assert plain["held_up"][0]["preempted"] == [4712]
    first = plain["preemptions"][0]
    assert (first["start_ns"], first["delay_ns"], first["cpu"]) == (EPOCH_NS + 5_000, 3_000, 1)
    assert (first["tid"], first["instead"], first["was_running"]) == (4712, None, True)


def test_what_is_not_known_is_null() -> None:
    """An empty trace has no span and no cut, and its threads' states are not known."""
    plain = plain_timeline(timeline_summary(engine_trace([])))
    assert plain["span_ns"] is None
    assert plain["cut"] is None
    assert plain["threads"][0]["running_ns"] is None
    assert plain["preemptions"] == plain["held_up"] == []
