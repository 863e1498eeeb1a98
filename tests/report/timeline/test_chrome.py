"""Timelines as Chrome's trace events."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind
from perfsuite.report.timeline.chrome import write_chrome_trace
from perfsuite.testing.engine_traces import engine_trace, event
from perfsuite.testing.large_trace import large_trace
from perfsuite.trace.timeline.build import build_timeline

from ...synthetic_timeline import EVIL, busy_trace


def written(trace: EngineTrace, tmp_path: Path) -> dict[str, Any]:
    """Return what is in the file, numbers to the last digit."""
    path = tmp_path / "trace.json"
    write_chrome_trace(trace, path)
    loaded: dict[str, Any] = json.loads(path.read_bytes(), parse_float=Decimal)
    return loaded


def of_phase(loaded: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    """Return the events of one phase."""
    return [each for each in loaded["traceEvents"] if each["ph"] == phase]


@pytest.mark.parametrize("trace", [busy_trace(), large_trace(40_000)], ids=["busy", "large"])
def test_the_file_holds_the_timeline(trace: EngineTrace, tmp_path: Path) -> None:
    """Each slice, instant and point of the timeline is there to the nanosecond, on its track, under its name."""
    loaded, timeline = written(trace, tmp_path), build_timeline(trace)
    slices = [
        (each["tid"], each["ts"] * 1000, each.get("dur", -1) * 1000, each["name"], each["cat"])
        for each in loaded["traceEvents"]
        if each["ph"] in "Xi"
    ]
    assert slices == [
        (
            int(each["track"]),
            int(each["start_ns"]),
            int(-1000 if each["end_ns"] == NOTHING else each["end_ns"] - each["start_ns"]),
            timeline.labels[each["label"]].name,
            timeline.labels[each["label"]].category,
        )
        for each in timeline.slices
    ]
    points = [(each["name"], each["ts"] * 1000, *each["args"].items()) for each in of_phase(loaded, "C")]
    tracks = timeline.tracks
    assert points == [
        (tracks[each["track"]].name, int(each["ns"]), (tracks[each["track"]].unit, int(each["value"])))
        for each in timeline.points
    ]


def test_tracks_arguments_and_arrows_are_where_they_belong(tmp_path: Path) -> None:
    """Tracks are sorted as in the timeline, arguments are those that are known, and arrows are within their slices."""
    loaded = written(busy_trace(), tmp_path)
    meta = of_phase(loaded, "M")
    assert meta[0] == {"ph": "M", "pid": 4711, "name": "process_name", "args": {"name": "llama-cli"}}
    names = {each["tid"]: each["args"]["name"] for each in meta if each["name"] == "thread_name"}
    order = {each["tid"]: each["args"]["sort_index"] for each in meta if each["name"] == "thread_sort_index"}
    assert {each["tid"] for each in of_phase(loaded, "X")} <= names.keys() == order.keys()
    assert [names[each] for each in sorted(order, key=order.__getitem__)][:3] == ["phases", "phases", "tokens"]
    by_name = {each["name"]: each["args"] for each in of_phase(loaded, "X")}
    assert by_name["MUL_MAT Kcur-0"] == {
        "about": "f32 64 from f32 64x64, f32 64",
        "cpu": 0,
        "iteration": 1,
        "evaluation": 1,
    }
    assert by_name["end_to_end"] == {"about": "timed by the driver"}
    starts = {(each["tid"], each["ts"]): each["name"] for each in of_phase(loaded, "X")}
    arrows = {phase: of_phase(loaded, phase) for phase in "stf"}
    assert {phase: [each["id"] for each in found] for phase, found in arrows.items()} == {key: [1, 2] for key in "stf"}
    names = {phase: {starts[each["tid"], each["ts"]] for each in found} for phase, found in arrows.items()}
    assert (names["s"], names["t"]) == ({"MUL_MAT Qcur-0"}, {"kernel_mul_mv"})


def test_a_hostile_name_stays_a_name(tmp_path: Path) -> None:
    """Quotes and control characters change nothing but the name; losses and the cut go along, and nothing is a file."""
    loaded = written(busy_trace(), tmp_path)
    expected = EVIL.replace("\n", "\ufffd").replace("\x1b", "\ufffd").replace("\x07", "\ufffd")
    assert f"MUL_MAT {expected}" in {each["name"] for each in of_phase(loaded, "X")}
    content = (tmp_path / "trace.json").read_bytes()
    assert all(byte == 0x0A or 0x20 <= byte < 0x7F for byte in content)
    assert loaded["displayTimeUnit"] == "ns"
    assert loaded["otherData"]["lost events"] == "3"
    assert loaded["otherData"]["cut"] == "the file ends within a record"
    assert len(written(engine_trace([]), tmp_path)["traceEvents"]) == 1


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A folder in its place is one line with the path."""
    with pytest.raises(PerfsuiteError, match=rf"^{tmp_path}: cannot be written"):
        write_chrome_trace(engine_trace([event(EventKind.TOKEN, 0, 1, value=1)]), tmp_path)
