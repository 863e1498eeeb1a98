"""Builds small traces of an engine, event by event."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from perfsuite.records.engine_columns import RING_DTYPE
from perfsuite.records.engine_trace import (
    EVENT_DTYPE,
    NOTHING,
    EngineTrace,
    EventFlag,
    EventKind,
    Events,
    ThreadState,
    TracedThread,
    TraceRecorder,
    new_events,
)
from perfsuite.records.events import Node, Tensor
from perfsuite.records.trace_levels import TraceLevel


def evaluation(launch_ns: int, *ends_ns: int, graph: int = 0, first_start_ns: int | None = None) -> bytes:
    """Return the events of one evaluation, whose operators end at these times."""
    entry = [] if first_start_ns is None else [(first_start_ns, graph, NOTHING)]
    ends = [(end_ns, graph, 1 + place) for place, end_ns in enumerate(ends_ns)]
    return np.array([*entry, (launch_ns, graph, 0), *ends], RING_DTYPE).tobytes()


#: Monotonic time at which made-up traces begin: a machine that has been up for two days.
EPOCH_NS = 172_800_000_000_000

#: In `small_trace`: so long lasts a token, an operator on thread 0, and so much longer on thread 1.
TOKEN_NS, OPERATOR_NS, EXTRA_NS = 100_000, 10_000, 2_000


def tensor(
    name: str, ne: Sequence[int] = (64,), *, type: str = "f32", element_bytes: int = 4, root: int | None = None
) -> Tensor:
    """Return a contiguous tensor; dimensions that are left out are 1, and its address follows from its name."""
    n0, n1, n2, n3 = (*ne, 1, 1, 1)[:4]
    nb = (element_bytes, element_bytes * n0, element_bytes * n0 * n1, element_bytes * n0 * n1 * n2)
    address = zlib.crc32(name.encode()) if root is None else root
    return Tensor(name=name, type=type, ne=(n0, n1, n2, n3), nb=nb, root=address)


def node(op: str, output: Tensor, *sources: Tensor, fused_op: str | None = None) -> Node:
    """Return an operator that makes one tensor from others."""
    return Node(tensor=output, op=op, sources=sources, fused_op=fused_op)


def small_graph() -> tuple[Node, ...]:
    """Return a layer's beginning: a norm that is fused with its weight, two products that share it, and their sum."""
    embedding, norm, query, key, total = map(tensor, ("embd", "attn_norm-0", "Qcur-0", "Kcur-0", "sum-0"))
    weights = [tensor(f"blk.0.attn_{each}.weight", (64, 64)) for each in "qk"]
    return (
        node("RMS_NORM", norm, embedding, tensor("blk.0.attn_norm.weight"), fused_op="MUL"),
        node("MUL_MAT", query, weights[0], norm),
        node("MUL_MAT", key, weights[1], norm),
        node("ADD", total, query, key),
    )


def event(kind: EventKind, start_ns: int, end_ns: int = NOTHING, **fields: Any) -> Events:
    """Return one event at a time after the epoch; fields that are left out hold NOTHING, flags 0."""
    times = {"start_ns": EPOCH_NS + start_ns, "end_ns": NOTHING if end_ns == NOTHING else EPOCH_NS + end_ns}
    return new_events(kind, 1, **times, **fields)


def engine_trace(events: Iterable[Events] = (), **fields: Any) -> EngineTrace:
    """Gather a trace of events in any order; fields that are left out are those of an eBPF recording of two threads."""
    found = np.concatenate([np.empty(0, EVENT_DTYPE), *events])
    usual: dict[str, Any] = {
        "recorder": TraceRecorder.EBPF,
        "levels": TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.OPERATOR | TraceLevel.STRUCTURE | TraceLevel.ENDS,
        "pid": 4711,
        "command": ("llama-cli", "-m", "model.gguf"),
        "engine_version": "llama 1, ggml 1",
        "threads": (TracedThread(tid=4711, name="llama-cli"), TracedThread(tid=4712, name="llama-cli")),
        "graphs": (small_graph(),),
        "backends": ("CPU",),
        "counters": np.empty((0, len(fields.get("counter_names", ()))), np.int64),
    }
    return EngineTrace(events=found[np.argsort(found["start_ns"], kind="stable")], **{**usual, **fields})


def small_trace(n_tokens: int = 3, **fields: Any) -> EngineTrace:
    """Return tokens of `small_graph` on two threads: thread 1 takes longer, and the ADD is thread 0's alone.

    Operators follow each other every 15 µs; each thread runs throughout on a processor of its own.
    """
    events = [each for number in range(n_tokens) for each in _token(number)]
    events += [_state(thread, 0, n_tokens * TOKEN_NS) for thread in (0, 1)]
    levels = TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.OPERATOR | TraceLevel.STRUCTURE | TraceLevel.ENDS
    return engine_trace(events, **{"levels": levels | TraceLevel.THREADS, **fields})


def _state(thread: int, start_ns: int, end_ns: int) -> Events:
    kind, running = EventKind.THREAD_STATE, ThreadState.RUNNING
    return event(kind, start_ns, end_ns, thread=thread, cpu=thread, value=running, flags=EventFlag.CUT)


def _token(number: int) -> list[Events]:
    start_ns, place = number * TOKEN_NS, {"iteration": number, "evaluation": number}
    graph_end_ns = start_ns + TOKEN_NS - 10_000
    made = [
        event(EventKind.TOKEN, start_ns, start_ns + TOKEN_NS - 5_000, value=1, thread=0, cpu=0, iteration=number),
        event(EventKind.GRAPH, start_ns + 5_000, graph_end_ns, value=0, thread=0, cpu=0, graph=0, **place),
    ]
    for position in range(len(small_graph())):
        begin_ns = start_ns + 10_000 + position * 15_000
        for thread in (0, 1):
            own_ns = 200 if (position == 3 and thread) else OPERATOR_NS + thread * EXTRA_NS
            from_ns = begin_ns + thread * 100
            made.append(event(EventKind.OPERATOR, from_ns, from_ns + own_ns, **_where(position, thread), **place))
    return made


def _where(position: int, thread: int) -> dict[str, int]:
    flags = EventFlag.FUSED if position == 0 else 0
    return {"thread": thread, "cpu": thread, "graph": 0, "node": position, "flags": flags}
