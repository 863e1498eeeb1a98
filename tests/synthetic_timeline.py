"""A trace that has something on every track of a timeline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, Events, ThreadState
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.engine_traces import engine_trace, event, node, small_graph, tensor

#: A tensor's name as a hostile program would choose it.
EVIL = 'x"}],\\\n\x1b]0;y\x07</script>'


def busy_trace() -> EngineTrace:
    """Return two tokens on two threads and a device: phases that nest, kernels that overlap, a switch of levels."""
    events = [
        event(EventKind.PHASE, 0, 3_000_000, value=1),
        event(EventKind.PHASE, 100, 2_999_999, value=0, iteration=0),
        event(EventKind.LEVELS, 1_500_000, 1_500_000, value=int(TraceLevel.TOKEN | TraceLevel.GRAPH)),
        *(each for number in (0, 1) for each in _token(number)),
    ]
    trace = engine_trace(
        events,
        phases=("decode", "end_to_end"),
        graphs=((*small_graph(), node("MUL_MAT", tensor(EVIL))),),
        backends=("CPU", "GPUOpenCL"),
        kernels=("kernel_mul_mv", EVIL),
        counter_names=("cycles", "page-faults"),
        counters=np.asarray([[1000, 0], [2000, NOTHING], [3000, 7]], dtype=np.int64),
    )
    return replace(trace, n_lost=3, cut="the file ends within a record", problems=("a clock ran backwards",))


def _token(number: int) -> list[Events]:
    at, place = number * 1_000_000, {"iteration": number, "evaluation": number}
    return [
        event(EventKind.TOKEN, at + 1_000, at + 900_001, value=1, thread=0, iteration=number),
        event(EventKind.GRAPH, at + 2_000, at + 500_000, value=0, graph=0, **place),
        event(EventKind.GRAPH, at + 400_000, at + 800_000, value=1, **place),
        _operator(at + 2_500, at + 9_000, thread=0, node=1, counters=0, **place),
        _operator(at + 2_600, at + 9_000, thread=1, node=1, counters=1, **place),
        _operator(at + 9_000, at + 9_000, thread=0, node=2, **place),
        _operator(at + 9_000, at + 20_123, thread=0, node=4, counters=2, **place),
        _operator(at + 9_100, NOTHING, thread=1, node=4, **place),
        _state(at + 2_600, at + 5_000, ThreadState.RUNNING),
        _state(at + 5_000, at + 8_000, ThreadState.RUNNABLE),
        _state(at + 8_000, at + 9_000, ThreadState.RUNNING),
        _state(at + 9_000, at + 500_000, ThreadState.IDLE),
        event(EventKind.KERNEL, at + 10_000, at + 30_000, value=0, graph=0, node=1, **place),
        event(EventKind.KERNEL, at + 20_000, at + 50_000, value=1, graph=0, node=1, **place),
        event(EventKind.KERNEL, at + 60_000, at + 70_000, value=0),
    ]


def _operator(start_ns: int, end_ns: int, **fields: int) -> Events:
    return event(EventKind.OPERATOR, start_ns, end_ns, graph=0, cpu=fields["thread"], **fields)


def _state(start_ns: int, end_ns: int, state: ThreadState) -> Events:
    return event(EventKind.THREAD_STATE, start_ns, end_ns, thread=1, cpu=1, value=state)
