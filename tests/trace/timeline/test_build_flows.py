"""Arrows from operators to kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfsuite.records.engine_trace import EventKind, Events
from perfsuite.testing.engine_traces import engine_trace, event
from perfsuite.trace.timeline.build import flows
from perfsuite.trace.timeline.tracks import Arrow


def operator(start_ns: int, *, evaluation: int, node: int = 0, thread: int = 0, graph: int = 0) -> Events:
    return event(
        EventKind.OPERATOR, start_ns, start_ns + 10, evaluation=evaluation, node=node, thread=thread, graph=graph
    )


def kernel(start_ns: int, **fields: Any) -> Events:
    return event(EventKind.KERNEL, start_ns, start_ns + 5, value=0, **{"graph": 0, "node": 0, **fields})


def arrows(*events: Events) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    trace = engine_trace(events)
    found = flows(trace.of(EventKind.OPERATOR), trace.of(EventKind.KERNEL))
    one, other, three, four = (each.tolist() for each in found)
    return list(zip(one, other, strict=True)), list(zip(three, four, strict=True))


def test_an_arrow_runs_from_the_first_thread_through_all_kernels() -> None:
    of_operators, of_kernels = arrows(
        operator(1, evaluation=0, thread=1),
        operator(0, evaluation=0),
        kernel(30, evaluation=0),
        kernel(20, evaluation=0),
        kernel(25, evaluation=0, node=7),
    )
    assert (of_operators, of_kernels) == ([(1, Arrow.BEGINS), (0, 0)], [(1, Arrow.PASSES), (0, 0), (1, Arrow.ENDS)])
    of_operators, of_kernels = arrows(
        operator(0, evaluation=0), operator(100, evaluation=1), kernel(120, evaluation=0), kernel(130, evaluation=1)
    )
    assert (of_operators, of_kernels) == ([(1, Arrow.BEGINS), (2, Arrow.BEGINS)], [(1, Arrow.ENDS), (2, Arrow.ENDS)])


def test_without_an_evaluation_time_decides() -> None:
    of_operators, of_kernels = arrows(
        kernel(-5),
        operator(0, evaluation=0),
        operator(2, evaluation=0, thread=1),
        operator(50, evaluation=0, node=1),
        kernel(60),
        operator(100, evaluation=1),
        kernel(100),
    )
    assert of_kernels == [(0, 0), (1, Arrow.ENDS), (2, Arrow.ENDS)]
    assert of_operators == [(1, Arrow.BEGINS), (0, 0), (0, 0), (2, Arrow.BEGINS)]
    assert arrows(operator(0, evaluation=0), kernel(5, node=-1), kernel(6, graph=1, evaluation=0))[1] == [(0, 0)] * 2
    assert (arrows(kernel(5, evaluation=0)), arrows(operator(0, evaluation=0))) == (([], [(0, 0)]), ([(0, 0)], []))


def test_many_kernels_without_evaluation_agree_with_a_plain_search() -> None:
    rng = np.random.default_rng(3)
    places = [(int(at), int(rng.integers(0, 4)), number) for number, at in enumerate(rng.integers(0, 999, 60))]
    kernels = [(int(at), int(rng.integers(0, 4))) for at in rng.integers(0, 999, 60)]
    trace = engine_trace(
        [operator(at, evaluation=number, node=node) for at, node, number in places]
        + [kernel(at, node=node) for at, node in kernels]
    )
    operators, found = trace.of(EventKind.OPERATOR), trace.of(EventKind.KERNEL)
    operator_flow, _, kernel_flow, _ = flows(operators, found)
    for each, flow in zip(found, kernel_flow.tolist(), strict=True):
        before = (operators["node"] == each["node"]) & (operators["start_ns"] <= each["start_ns"])
        latest = operators["start_ns"][before].max(initial=-1)
        led = np.flatnonzero(operator_flow == flow) if flow else []
        assert bool(flow) == bool(before.any())
        assert all(operators["start_ns"][at] == latest for at in led)
