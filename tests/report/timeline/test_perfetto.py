"""Timelines as Perfetto traces, decoded by Perfetto's own classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

from perfsuite.records.engine_trace import NOTHING, EngineTrace
from perfsuite.report.timeline.perfetto import varint, write_perfetto
from perfsuite.testing.engine_traces import engine_trace, small_trace
from perfsuite.testing.large_trace import large_trace
from perfsuite.trace.timeline.build import build_timeline
from perfsuite.trace.timeline.tracks import Arrow, Timeline

from ...synthetic_timeline import busy_trace

BEGIN, END, INSTANT, COUNTER = (
    getattr(perfetto.TrackEvent, f"TYPE_{name}") for name in ("SLICE_BEGIN", "SLICE_END", "INSTANT", "COUNTER")
)


def written(trace: EngineTrace, tmp_path: Path) -> list[Any]:
    """Return the packets of the file, of which every byte belongs to a field that Perfetto knows."""
    path = tmp_path / "trace.pftrace"
    write_perfetto(trace, path)
    decoded = perfetto.Trace.FromString(path.read_bytes())
    decoded.DiscardUnknownFields()
    assert decoded.ByteSize() == path.stat().st_size
    return list(decoded.packet)


def interned(packets: list[Any], field: str) -> dict[int, str]:
    found = {}
    for each in getattr(packets[0].interned_data, field):
        found[each.iid] = each.str.decode() if field == "debug_annotation_string_values" else each.name
    return found


def events(packets: list[Any]) -> list[tuple[int, Any]]:
    return [(each.timestamp, each.track_event) for each in packets if each.HasField("track_event")]


@pytest.mark.parametrize("trace", [busy_trace(), large_trace(40_000)], ids=["busy", "large"])
def test_the_file_holds_the_timeline(trace: EngineTrace, tmp_path: Path) -> None:
    """Every slice begins and ends on its track at its nanosecond under its name, and every point has its value."""
    packets, timeline = written(trace, tmp_path), build_timeline(trace)
    names, categories = interned(packets, "event_names"), interned(packets, "event_categories")
    slices, points = [], []
    for ns, each in events(packets):
        if each.type == COUNTER:
            points.append((ns, each.track_uuid - 1, each.counter_value))
        elif each.type == END:
            *before, end = slices.pop()
            assert (each.track_uuid - 1, end) == (before[0], None)
            slices.append((*before, ns))
        else:
            (category,) = each.category_iids
            end = None if each.type == BEGIN else NOTHING
            slices.append((each.track_uuid - 1, names[each.name_iid], categories[category], ns, end))
    assert slices == expected_slices(timeline)
    assert points == [(int(each["ns"]), int(each["track"]), int(each["value"])) for each in timeline.points]


def expected_slices(timeline: Timeline) -> list[tuple[int, str, str, int, int]]:
    labels = timeline.labels
    return [
        (
            int(each["track"]),
            labels[each["label"]].name,
            labels[each["label"]].category,
            int(each["start_ns"]),
            int(each["end_ns"]),
        )
        for each in timeline.slices
    ]


def test_tracks_are_of_the_process_its_threads_and_counters(tmp_path: Path) -> None:
    packets = written(busy_trace(), tmp_path)
    described = [each.track_descriptor for each in packets if each.HasField("track_descriptor")]
    by_name = {each.name: each for each in described}
    process = described[0]
    assert (process.process.pid, process.process.process_name) == (4711, "llama-cli")
    assert process.child_ordering == perfetto.TrackDescriptor.EXPLICIT
    threads = [each for each in described if each.HasField("thread")]
    assert [(each.thread.pid, each.thread.tid) for each in threads] == [(4711, 4711), (4711, 4712)]
    assert all(each.parent_uuid == process.uuid for each in threads)
    assert by_name["cycles of 4712"].parent_uuid == by_name["state of 4712"].parent_uuid == threads[1].uuid
    assert by_name["cycles of 4712"].counter.unit_name == "cycles/s"
    assert [each.uuid for each in described] == list(range(1, len(described) + 1))
    assert all(each.uuid > each.parent_uuid for each in described)


def test_flows_lead_from_operators_to_kernels(tmp_path: Path) -> None:
    packets, timeline = written(busy_trace(), tmp_path), build_timeline(busy_trace())
    found = [
        (list(each.flow_ids), list(each.terminating_flow_ids)) for _, each in events(packets) if each.type == BEGIN
    ]
    slices = [each for each in timeline.slices if each["end_ns"] != NOTHING]
    expected = [
        (
            [int(each["flow"])] if each["arrow"] in (Arrow.BEGINS, Arrow.PASSES) else [],
            [int(each["flow"])] if each["arrow"] == Arrow.ENDS else [],
        )
        for each in slices
    ]
    assert found == expected
    assert sum(map(len, (flow for pair in found for flow in pair))) == 6


def test_slices_of_a_track_end_before_the_next_begins_in_the_file(tmp_path: Path) -> None:
    """Events of one track come in the order of time, and names of the traced program are printable."""
    last: dict[int, int] = {}
    depth: dict[int, int] = {}
    for ns, each in events(written(busy_trace(), tmp_path)):
        assert ns >= last.get(each.track_uuid, 0)
        last[each.track_uuid] = ns
        depth[each.track_uuid] = depth.get(each.track_uuid, 0) + {BEGIN: 1, END: -1}.get(each.type, 0)
        assert depth[each.track_uuid] in (0, 1)
    assert set(depth.values()) == {0}
    packets = written(busy_trace(), tmp_path)
    names = [*interned(packets, "event_names").values(), *interned(packets, "debug_annotation_string_values").values()]
    assert any("</script>" in each for each in names)
    assert all(each.isprintable() for each in names)


def test_a_process_that_is_not_known_is_a_track(tmp_path: Path) -> None:
    """Without a pid nothing claims to be a process or a thread of the system's."""
    trace = small_trace(pid=None)
    described = [each.track_descriptor for each in written(trace, tmp_path) if each.HasField("track_descriptor")]
    assert not any(each.HasField("process") or each.HasField("thread") for each in described)
    assert described[0].name == "llama-cli"
    assert len(written(engine_trace([]), tmp_path)) == 2


@given(st.lists(st.integers(0, 2**63 - 1), max_size=20))
def test_varints_come_back(numbers: list[int]) -> None:
    """Seven bits a byte, lowest first, no byte more than it takes."""
    rows = varint(np.asarray(numbers, dtype=np.int64))
    for number, cells, mask in zip(numbers, rows.cells, rows.mask, strict=True):
        content = bytes(cells[mask])
        assert sum((byte & 0x7F) << 7 * place for place, byte in enumerate(content)) == number
        assert [bool(byte & 0x80) for byte in content] == [True] * (len(content) - 1) + [False]
        assert len(content) == max(1, -(-number.bit_length() // 7))
