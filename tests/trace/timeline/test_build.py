"""Traces laid out as timelines, with arrows from operators to kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfsuite.records.engine_trace import NOTHING, EventKind, Events
from perfsuite.testing.engine_traces import EPOCH_NS, engine_trace, event, small_trace
from perfsuite.trace.timeline.build import build_timeline, counter_points, flows
from perfsuite.trace.timeline.tracks import Arrow, Timeline

from ...synthetic_timeline import busy_trace


def operator(start_ns: int, end_ns: int, counters: int, *, evaluation: int = 0, thread: int = 0) -> Events:
    return event(EventKind.OPERATOR, start_ns, end_ns, counters=counters, evaluation=evaluation, thread=thread)


def points(*events: Events, counters: list[list[int]]) -> dict[int, list[list[tuple[int, int]]]]:
    """Return by thread and counter the times after the epoch and the values."""
    trace = engine_trace(events, counter_names=("cycles", "faults"), counters=np.asarray(counters, dtype=np.int64))
    found = counter_points(trace, trace.of(EventKind.OPERATOR))
    return {
        thread: [[(ns - EPOCH_NS, value) for ns, value, _ in one.tolist()] for one in of_thread]
        for thread, of_thread in found.items()
    }


def test_a_rate_is_the_count_over_the_time() -> None:
    """500 cycles in 250 ns are 2 per ns until the evaluation ends, by thread; no row or time, no rate."""
    found = points(
        operator(0, 250, 0), operator(300, 400, 1), operator(900, 1000, 2, evaluation=1), counters=[[500, 1]] * 3
    )
    rates = [(0, 2_000_000_000), (300, 5_000_000_000), (400, 0), (900, 5_000_000_000), (1000, 0)]
    assert (found[0][0], found[0][1][:2]) == (rates, [(0, 4_000_000), (300, 10_000_000)])
    found = points(operator(0, 100, 0), operator(0, 200, 1, thread=1), counters=[[100, NOTHING], [100, NOTHING]])
    assert found == {0: [[(0, 10**9), (100, 0)], []], 1: [[(0, 5 * 10**8), (200, 0)], []]}
    assert points(operator(0, 100, NOTHING), operator(5, NOTHING, 0), operator(7, 7, 0), counters=[[1, 1]]) == {}


Shown = list[tuple[str, int, int]]


def shown(timeline: Timeline) -> dict[str, Shown]:
    """Return by track the slices: name, start and end after the epoch; lanes of one name are one."""
    found: dict[str, Shown] = {}
    for each in timeline.slices:
        end = int(each["end_ns"])
        row = (
            timeline.labels[each["label"]].name,
            int(each["start_ns"]) - EPOCH_NS,
            NOTHING if end == NOTHING else end - EPOCH_NS,
        )
        found.setdefault(timeline.tracks[each["track"]].name, []).append(row)
    return found


def test_each_thread_has_its_tracks_below_it() -> None:
    timeline = build_timeline(busy_trace())
    parents = {each.name: timeline.tracks[each.parent].name for each in timeline.tracks if each.parent is not None}
    assert parents["tokens"] == parents["llama-cli 4712"] == "llama-cli"
    assert parents["state of 4712"] == parents["cycles of 4712"] == "llama-cli 4712"


def test_events_are_slices_at_their_times() -> None:
    found = shown(build_timeline(busy_trace()))
    assert found["phases"] == [("end_to_end", 0, 3_000_000), ("decode", 100, 2_999_999)]
    assert found["tokens"] == [("1 token", 1_000, 900_001), ("1 token", 1_001_000, 1_900_001)]
    assert found["graphs on GPUOpenCL"][0] == ("graph", 400_000, 800_000)
    assert found["llama-cli 4711"][:2] == [("MUL_MAT Qcur-0", 2_500, 9_000), ("MUL_MAT Kcur-0", 9_000, 9_000)]
    assert found["llama-cli 4712"][1][1:] == (9_100, NOTHING)
    assert found["state of 4712"][1] == ("runnable for CPU 1", 5_000, 8_000)
    assert found["kernels"][0] == ("kernel_mul_mv", 10_000, 30_000)
    assert found["levels of the recorder"] == [("levels: token, graph", 1_500_000, NOTHING)]
    for trace in (busy_trace(), small_trace(n_tokens=5)):
        assert len(build_timeline(trace).slices) == len(trace.events)


def test_slices_of_one_track_do_not_overlap() -> None:
    crossed = [event(EventKind.OPERATOR, at, 70 - at, thread=0) for at in range(0, 60, 5)]
    for trace in (busy_trace(), engine_trace(crossed)):
        slices = build_timeline(trace).slices
        for track in np.unique(slices["track"]):
            own = slices[slices["track"] == track]
            ends = np.maximum(own["start_ns"], own["end_ns"])
            assert (own["start_ns"][1:] >= ends[:-1]).all()
    timeline = build_timeline(busy_trace())
    operators = timeline.slices[
        np.asarray([timeline.labels[each].category for each in timeline.slices["label"]]) == "operator"
    ]
    last = operators[-1]
    assert (last["cpu"], last["iteration"], last["evaluation"]) == (1, 1, 1)


def test_arrows_lead_from_operators_to_kernels() -> None:
    timeline = build_timeline(busy_trace())
    led = timeline.slices[timeline.slices["arrow"] != 0]
    found = {(int(each["flow"]), int(each["arrow"])): timeline.labels[each["label"]].name for each in led}
    assert found[1, Arrow.BEGINS] == found[2, Arrow.BEGINS] == "MUL_MAT Qcur-0"
    assert found[1, Arrow.PASSES] == "kernel_mul_mv"
    assert found[1, Arrow.ENDS].startswith("x")
    assert len(led) == 6


def enqueued(start_ns: int, *, evaluation: int, node: int = 0, thread: int = 0) -> Events:
    return event(EventKind.OPERATOR, start_ns, start_ns + 10, evaluation=evaluation, node=node, thread=thread, graph=0)


def kernel(start_ns: int, **fields: Any) -> Events:
    return event(EventKind.KERNEL, start_ns, start_ns + 5, value=0, **{"graph": 0, "node": 0, **fields})


def arrows(*events: Events) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    trace = engine_trace(events)
    found = flows(trace.of(EventKind.OPERATOR), trace.of(EventKind.KERNEL))
    one, other, three, four = (each.tolist() for each in found)
    return list(zip(one, other, strict=True)), list(zip(three, four, strict=True))


def test_an_arrow_runs_from_the_first_thread_through_all_kernels() -> None:
    of_operators, of_kernels = arrows(
        enqueued(1, evaluation=0, thread=1),
        enqueued(0, evaluation=0),
        kernel(30, evaluation=0),
        kernel(20, evaluation=0),
        kernel(25, evaluation=0, node=7),
    )
    assert (of_operators, of_kernels) == ([(1, Arrow.BEGINS), (0, 0)], [(1, Arrow.PASSES), (0, 0), (1, Arrow.ENDS)])
    of_operators, of_kernels = arrows(
        enqueued(0, evaluation=0), enqueued(100, evaluation=1), kernel(120, evaluation=0), kernel(130, evaluation=1)
    )
    assert (of_operators, of_kernels) == ([(1, Arrow.BEGINS), (2, Arrow.BEGINS)], [(1, Arrow.ENDS), (2, Arrow.ENDS)])
