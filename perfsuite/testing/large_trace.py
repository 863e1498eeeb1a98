"""Builds traces as long as one wants, of the proportions that a real decode has."""

from __future__ import annotations

import numpy as np

from perfsuite.records.engine_trace import NOTHING, EngineTrace, EventKind, Events, ThreadState, Times, new_events
from perfsuite.records.events import Node, Tensor
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.engine_traces import EPOCH_NS, engine_trace, node, tensor

#: Of SmolLM2-135M: layers, and the width of a token.
N_LAYERS, WIDTH = 30, 576
#: Operators follow each other at this distance, and take so much of it on thread 0 and on thread 1.
STEP_NS, OWN_NS = 11_000, (8_000, 9_500)
#: Each thread is pre-empted so often in a token.
N_SWITCHES = 4

_COUNTERS = ("cycles", "page-faults")


def large_trace(n_events: int, *, seed: int = 1) -> EngineTrace:
    """Return a decode on two threads with at least `n_events`: tokens, graphs, operators with counters, states."""
    graph = decode_graph()
    per_token = 2 + 2 * len(graph) + 2 * 2 * N_SWITCHES
    n_tokens = max(1, -(-n_events // per_token))
    rng = np.random.default_rng(seed)
    token_ns = STEP_NS * (len(graph) + 2)
    starts_ns = EPOCH_NS + token_ns * np.arange(n_tokens, dtype=np.int64)
    parts = [
        _spans(EventKind.TOKEN, starts_ns, token_ns - 1000, value=1),
        _spans(EventKind.GRAPH, starts_ns + 1000, token_ns - 3000, value=0, graph=0),
        *(_operators(starts_ns, len(graph), thread, rng) for thread in (0, 1)),
        *(_states(starts_ns, token_ns, thread) for thread in (0, 1)),
    ]
    events = np.concatenate(parts)
    n_operators = int((events["kind"] == EventKind.OPERATOR).sum())
    events["counters"][events["kind"] == EventKind.OPERATOR] = np.arange(n_operators)
    counters = rng.integers(1, 1_000_000, (n_operators, len(_COUNTERS)))
    levels = TraceLevel.TOKEN | TraceLevel.GRAPH | TraceLevel.OPERATOR | TraceLevel.STRUCTURE | TraceLevel.ENDS
    return engine_trace(
        [events],
        levels=levels | TraceLevel.THREADS | TraceLevel.COUNTERS,
        graphs=(graph,),
        counter_names=_COUNTERS,
        counters=counters,
    )


def decode_graph(n_layers: int = N_LAYERS) -> tuple[Node, ...]:
    """Return the operators of a decode step: fifteen a layer, then the final norm and the output."""
    made: list[Node] = []
    hidden = tensor("embd", (WIDTH,))
    made.append(node("GET_ROWS", hidden, tensor("token_embd.weight", (WIDTH, 49152), type="q8_0", element_bytes=1)))
    for layer in range(n_layers):
        made += _layer(layer, made[-1])
    made.append(_next("RMS_NORM", "result_norm", made[-1], "output_norm.weight", fused_op="MUL"))
    made.append(_next("MUL_MAT", "result_output", made[-1], "token_embd.weight"))
    return tuple(made)


def _layer(layer: int, before: Node) -> list[Node]:
    norm = _next("RMS_NORM", f"attn_norm-{layer}", before, f"blk.{layer}.attn_norm.weight", fused_op="MUL")
    products = [
        _next("MUL_MAT", f"{each}cur-{layer}", norm, f"blk.{layer}.attn_{each.lower()}.weight") for each in "QKV"
    ]
    rotated = [_next("ROPE", f"{each.tensor.name} (rope)", each) for each in products[:2]]
    cached = (("k", rotated[1]), ("v", products[2]))
    stored = [_next("SET_ROWS", f"cache_{which}_l{layer}", each) for which, each in cached]
    attention = node("FLASH_ATTN_EXT", _made(f"kqv_out-{layer}"), *(each.tensor for each in (rotated[0], *stored)))
    output = _next("MUL_MAT", f"attn_out-{layer}", attention, f"blk.{layer}.attn_output.weight")
    added = node("ADD", _made(f"ffn_inp-{layer}"), output.tensor, before.tensor)
    inner = _next("RMS_NORM", f"ffn_norm-{layer}", added, f"blk.{layer}.ffn_norm.weight", fused_op="MUL")
    gates = [
        _next("MUL_MAT", f"ffn_{each}-{layer}", inner, f"blk.{layer}.ffn_{each}.weight") for each in ("gate", "up")
    ]
    active = node("SWIGLU", _made(f"ffn_swiglu-{layer}"), *(each.tensor for each in gates))
    down = _next("MUL_MAT", f"ffn_out-{layer}", active, f"blk.{layer}.ffn_down.weight")
    last = node("ADD", _made(f"l_out-{layer}"), down.tensor, added.tensor)
    return [norm, *products, *rotated, *stored, attention, output, added, inner, *gates, active, down, last]


def _next(op: str, name: str, before: Node, weight: str = "", *, fused_op: str | None = None) -> Node:
    sources = [tensor(weight, (WIDTH, WIDTH), type="q8_0", element_bytes=1)] if weight else []
    return node(op, _made(name), *sources, before.tensor, fused_op=fused_op)


def _made(name: str) -> Tensor:
    return tensor(name, (WIDTH,))


def _operators(starts_ns: Times, n_nodes: int, thread: int, rng: np.random.Generator) -> Events:
    places = np.arange(n_nodes, dtype=np.int64)
    begins_ns = (starts_ns[:, np.newaxis] + 2000 + STEP_NS * places).reshape(-1)
    own_ns = OWN_NS[thread] + rng.integers(0, 1000, begins_ns.size)
    made = _spans(EventKind.OPERATOR, begins_ns, own_ns, thread=thread, graph=0)
    made["node"] = np.tile(places, starts_ns.size)
    made["iteration"] = made["evaluation"] = np.repeat(np.arange(starts_ns.size), n_nodes)
    return made


def _states(starts_ns: Times, token_ns: int, thread: int) -> Events:
    """Return a thread that runs, and that waits for a processor for a moment, so and so often in a token."""
    period_ns = token_ns // N_SWITCHES
    begins_ns = (starts_ns[:, np.newaxis] + period_ns * np.arange(N_SWITCHES)).reshape(-1)
    running_ns = period_ns - 5000
    kind, fields = EventKind.THREAD_STATE, {"thread": thread, "iteration": NOTHING, "evaluation": NOTHING}
    running = _spans(kind, begins_ns, running_ns, value=ThreadState.RUNNING, **fields)
    waiting = _spans(kind, begins_ns + running_ns, 5000, value=ThreadState.RUNNABLE, **fields)
    return np.concatenate([running, waiting])


def _spans(kind: EventKind, starts_ns: Times, duration_ns: int | Times, **fields: int) -> Events:
    """Return events on thread 0, the first in iteration 0 and so on, except what the fields say."""
    number = np.arange(starts_ns.size)
    usual = {"thread": 0, "start_ns": starts_ns, "end_ns": starts_ns + duration_ns}
    made = new_events(kind, number.size, **{**usual, "iteration": number, "evaluation": number, **fields})
    made["cpu"] = made["thread"]
    if kind is EventKind.TOKEN:
        made["evaluation"] = NOTHING
    return made
