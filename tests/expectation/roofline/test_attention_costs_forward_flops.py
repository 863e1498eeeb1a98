"""The FLOPs of whole architectures by formula, beside the engine's graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.graph import Batch, Operator, Settings, engine_graph
from perfsuite.expectation.roofline.attention_costs import (
    AttentionCost,
    AttentionDimensions,
    AttentionKind,
    attention_cost,
    decode_attention_flops,
    forward_flops,
)
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find
from perfsuite.workload.quantization import tensor_types

#: As many tokens as the engine's padding of the cache, so that it sees no more.
N = 256

SMALL = AttentionDimensions(n_embd=60, n_heads=6, n_key_heads=3, head_size=10)


def of_architecture(a: Architecture) -> AttentionDimensions:
    """Return the sizes of an architecture."""
    return AttentionDimensions(n_embd=a.n_embd, n_heads=a.n_heads, n_key_heads=a.n_kv_heads, head_size=a.head_dim)


def prompt_graph(a: Architecture, *, n_outputs: int = N) -> tuple[Operator, ...]:
    """Return the engine's graph of a prompt that fills the cache, scores and mix as products of their own."""
    batch = Batch(n_tokens=N, n_outputs=n_outputs, n_used=N, n_ctx=N)
    return engine_graph(a, tensor_types(a, "f16"), batch, Settings(flash_attn=False))


def product_flops(graph: Iterable[Operator], *roles: str) -> int:
    """Sum the FLOPs of matrix products, of some roles in the first layer where they are given."""
    return sum(
        each.cost.flops
        for each in graph
        if each.op == "MUL_MAT" and (not roles or (each.role in roles and each.layer == 0))
    )


@given(n_ctx=st.integers(1, 10**6))
def test_decode_is_the_last_row_of_the_scores(n_ctx: int) -> None:
    """One token over ctx positions costs what ctx tokens over ctx positions cost, divided by ctx."""
    cost = attention_cost(AttentionKind.GQA, SMALL, n_ctx)
    assert decode_attention_flops(SMALL, n_ctx) * n_ctx == 2 * cost.attention_macs


@pytest.mark.parametrize("name", ["smollm2-135m", "qwen2.5-1.5b", "smollm2-1.7b"])
def test_the_whole_is_every_product_of_the_engine(name: str) -> None:
    """With logits for all tokens the formula is the sum over the engine's matrix products, masked scores included."""
    a = find(name)
    cost = attention_cost(AttentionKind.GQA, of_architecture(a), N)
    sizes = {"n_layers": a.n_layers, "n_embd": a.n_embd, "n_ff": a.n_ff, "n_vocab": a.n_vocab, "n_tokens": N}
    whole = forward_flops(cost, **sizes, n_logits=N, is_causal=False)
    assert whole == product_flops(prompt_graph(a))
    halved = forward_flops(cost, **sizes, n_logits=N, is_causal=True)
    assert whole - halved == a.n_layers * cost.attention_macs


def test_the_engine_saves_in_its_last_layer() -> None:
    """With logits for one token alone, the feed-forward block of the last layer is of one token."""
    a = find("smollm2-135m")
    cost = attention_cost(AttentionKind.GQA, of_architecture(a), N)
    sizes = {"n_layers": a.n_layers, "n_embd": a.n_embd, "n_ff": a.n_ff, "n_vocab": a.n_vocab, "n_tokens": N}
    formula = forward_flops(cost, **sizes, n_logits=1, is_causal=False)
    engine = product_flops(prompt_graph(a, n_outputs=1))
    assert formula - engine == 2 * (N - 1) * 3 * a.n_embd * a.n_ff


def test_decode_attention_is_the_engines() -> None:
    """One token over a full cache costs 4 nq dh ctx in scores and mix of each layer."""
    a = find("smollm2-135m")
    batch = Batch(n_tokens=1, n_outputs=1, n_used=512, n_ctx=512)
    graph = engine_graph(a, tensor_types(a, "f16"), batch, Settings(flash_attn=False))
    assert product_flops(graph, "kq", "kqv") == decode_attention_flops(of_architecture(a), 512)


@pytest.mark.parametrize("wrong", [0, -3, 2.0])
def test_sizes_are_counts(wrong: Any) -> None:
    """A size that is no count is refused by name; logits alone may be none."""
    with pytest.raises(PerfsuiteError, match="decode attention: n_ctx is"):
        decode_attention_flops(SMALL, wrong)
    cost = AttentionCost(kv_elements=1, attention_macs=1, linear_macs=1)
    sizes = {"n_layers": 1, "n_embd": 1, "n_ff": 1, "n_vocab": 1, "n_tokens": 1, "n_logits": 0}
    assert forward_flops(cost, **sizes, is_causal=False) == 2 + 2 + 6
    for name in sizes:
        refused = -1 if name == "n_logits" else wrong
        with pytest.raises(PerfsuiteError, match=f"forward FLOPs: {name} is"):
            forward_flops(cost, **{**sizes, name: refused}, is_causal=True)


def test_decode_needs_a_head_size() -> None:
    """Without the size of a head there is no score to count."""
    with pytest.raises(PerfsuiteError, match="head_size is None"):
        decode_attention_flops(AttentionDimensions(n_embd=60, n_heads=6), 1)
