"""Made-up traces whose statistics are known: operators that follow laws, experts that were chosen as told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from perfsuite.records.engine_trace import EXPERT_DTYPE, EngineTrace, EventKind, Events, Experts
from perfsuite.records.events import Node
from perfsuite.testing.engine_traces import engine_trace, event, node, tensor

#: Time of one operator on one thread, ns: of the step, the role's place in the graph, and the thread.
Law = Callable[[int, int, int], int]

STEP_NS = 1_000_000


def product(name: str, k: int, m: int, n_tokens: int = 1) -> Node:
    weights = tensor(f"blk.0.{name}.weight", (k, m), type="q8_0")
    return node("MUL_MAT", tensor(f"{name}-0", (m, n_tokens)), weights, tensor("x", (k, n_tokens)))


def attention(n_positions: int, n_tokens: int = 1) -> Node:
    """Return fused attention over so many positions of the cache."""
    query = tensor("q", (64, n_tokens, 9))
    cache = tensor("cache_k_l0 (view)", (64, n_positions, 3), type="f16", element_bytes=2)
    values = tensor("cache_v_l0 (view)", (64, n_positions, 3), type="f16", element_bytes=2)
    return node("FLASH_ATTN_EXT", tensor("node_7", (64, 9, n_tokens)), query, cache, values)


def norm(width: int = 64, n_tokens: int = 1) -> Node:
    sources = (tensor("l_in", (width, n_tokens)), tensor("blk.0.attn_norm.weight", (width,)))
    return node("RMS_NORM", tensor("attn_norm-0", (width, n_tokens)), *sources, fused_op="MUL")


def expert_product(layer: int, n_used: int = 2, n_tokens: int = 1) -> Node:
    weights = tensor(f"blk.{layer}.ffn_gate_exps.weight", (64, 32, 8), type="q8_0")
    ids = tensor(f"ffn_moe_topk-{layer}", (n_used, n_tokens), type="i32")
    made = tensor(f"ffn_moe_gate-{layer}", (32, n_used, n_tokens))
    return node("MUL_MAT_ID", made, weights, tensor("x", (64, 1, n_tokens)), ids)


def step_events(
    number: int,
    law: Law,
    n_nodes: int,
    *,
    n_tokens: int = 1,
    graph: int = 0,
    n_threads: int = 2,
    flags: int = 0,
    counters: int | None = None,
) -> list[Events]:
    """Return one call of llama_decode and its operators, one behind the other, each when all threads are done."""
    at_ns = number * STEP_NS + 1_000
    place = {"iteration": number, "evaluation": number, "graph": graph, "flags": flags}
    made = []
    for position in range(n_nodes):
        times_ns = [law(number, position, thread) for thread in range(n_threads)]
        for thread, time_ns in enumerate(times_ns):
            row = -1 if counters is None else counters + position * n_threads + thread
            made.append(
                event(
                    EventKind.OPERATOR,
                    at_ns,
                    at_ns + time_ns,
                    thread=thread,
                    cpu=thread,
                    node=position,
                    counters=row,
                    **place,
                )
            )
        at_ns += max(times_ns)
    call = event(EventKind.TOKEN, number * STEP_NS, at_ns + 1_000, value=n_tokens, thread=0, iteration=number)
    return [call, *made]


def law_trace(graph: Sequence[Node], n_steps: int, law: Law, *, n_tokens: int = 1, **fields: Any) -> EngineTrace:
    events = [each for number in range(n_steps) for each in step_events(number, law, len(graph), n_tokens=n_tokens)]
    return engine_trace(events, graphs=(tuple(graph),), **fields)


def experts_of(chosen: Iterable[tuple[int, int, Sequence[Sequence[int]]]]) -> Experts:
    """Return the choices of routers: (iteration, layer, the experts of each token)."""
    rows = [
        (iteration, iteration, layer, token, slot, expert)
        for iteration, layer, tokens in chosen
        for token, experts in enumerate(tokens)
        for slot, expert in enumerate(experts)
    ]
    return np.array(rows, dtype=EXPERT_DTYPE)
