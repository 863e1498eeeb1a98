"""The formulas of six kinds of attention, by relations between them and beside the engine's graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.graph import Batch, Operator, Settings, engine_graph
from perfsuite.expectation.roofline.attention_costs import (
    AttentionDimensions,
    AttentionKind,
    attention_cost,
)
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find
from perfsuite.workload.quantization import tensor_types

#: As many tokens as the engine's padding of the cache, so that it sees no more.
N = 256

#: Every size that any kind needs, no two alike.
FULL = AttentionDimensions(
    n_embd=60,
    n_heads=6,
    n_key_heads=3,
    n_value_heads=2,
    n_latent_groups=5,
    head_size=10,
    key_size=14,
    latent_value_size=22,
    kv_rank=26,
    rope_size=4,
    nope_size=8,
)

NEEDED = {
    AttentionKind.MHA: {"head_size"},
    AttentionKind.GQA: {"head_size", "n_key_heads"},
    AttentionKind.MLA: {"kv_rank", "rope_size", "nope_size", "latent_value_size"},
    AttentionKind.GVA: {"head_size", "n_key_heads"},
    AttentionKind.GHA: {"head_size", "n_key_heads", "n_value_heads"},
    AttentionKind.GTA: {"head_size", "n_key_heads", "n_latent_groups", "key_size", "latent_value_size"},
}

sizes = st.integers(1, 4096)


def dimensions(**changes: Any) -> AttentionDimensions:
    """Return `FULL` with changes."""
    return AttentionDimensions(**{**{name: getattr(FULL, name) for name in FULL.__dataclass_fields__}, **changes})


def of_architecture(a: Architecture) -> AttentionDimensions:
    """Return the sizes of an architecture; the latent value of its MLA is as long as the rank."""
    return AttentionDimensions(
        n_embd=a.n_embd,
        n_heads=a.n_heads,
        n_key_heads=a.n_kv_heads,
        head_size=a.head_dim,
        kv_rank=a.mla.kv_lora_rank if a.mla else None,
        rope_size=a.mla.qk_rope_head_dim if a.mla else None,
        nope_size=a.mla.qk_nope_head_dim if a.mla else None,
        latent_value_size=a.mla.kv_lora_rank if a.mla else None,
    )


def prompt_graph(a: Architecture, *, n_outputs: int = N) -> tuple[Operator, ...]:
    """Return the engine's graph of a prompt that fills the cache, scores and mix as products of their own."""
    batch = Batch(n_tokens=N, n_outputs=n_outputs, n_used=N, n_ctx=N)
    return engine_graph(a, tensor_types(a, "f16"), batch, Settings(flash_attn=False))


def product_macs(graph: Iterable[Operator], *roles: str, layer: int | None = None) -> int:
    """Sum the multiply-accumulates of matrix products, of some roles in one layer where they are given."""
    return sum(
        each.cost.flops // 2
        for each in graph
        if each.op == "MUL_MAT" and (not roles or (each.role in roles and each.layer == layer))
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        # N = 3, computed by hand from the table.
        (AttentionKind.MHA, (360, 1080, 43200)),
        (AttentionKind.GQA, (180, 1080, 32400)),
        (AttentionKind.MLA, (90, 1080, 35496)),
        (AttentionKind.GVA, (270, 1080, 32400)),
        (AttentionKind.GHA, (150, 1080, 30600)),
        (AttentionKind.GTA, (420, 1944, 61560)),
    ],
)
def test_the_table_by_hand(kind: AttentionKind, expected: tuple[int, int, int]) -> None:
    """KV elements, attention and linear MACs of each kind for three tokens."""
    cost = attention_cost(kind, FULL, 3)
    assert (cost.kv_elements, cost.attention_macs, cost.linear_macs) == expected


@given(n_heads=sizes, head_size=sizes, n_tokens=sizes)
def test_a_key_head_for_each_query_makes_gqa_mha(n_heads: int, head_size: int, n_tokens: int) -> None:
    """Where heads fill the width and none is shared, all of GQA, GVA and GHA cost what MHA costs."""
    of = AttentionDimensions(
        n_embd=n_heads * head_size,
        n_heads=n_heads,
        n_key_heads=n_heads,
        n_value_heads=n_heads,
        head_size=head_size,
    )
    mha = attention_cost(AttentionKind.MHA, of, n_tokens)
    for kind in (AttentionKind.GQA, AttentionKind.GVA, AttentionKind.GHA):
        assert attention_cost(kind, of, n_tokens) == mha


@given(kind=st.sampled_from(AttentionKind), n_tokens=st.integers(1, 10**6), times=st.integers(1, 100))
def test_length_is_linear_but_for_scores(kind: AttentionKind, n_tokens: int, times: int) -> None:
    """k times the tokens are k times the cache and the products with weights, and k squared times the scores."""
    one, many = (attention_cost(kind, FULL, n) for n in (n_tokens, times * n_tokens))
    assert many.kv_elements == times * one.kv_elements
    assert many.linear_macs == times * one.linear_macs
    assert many.attention_macs == times**2 * one.attention_macs


@given(n_key_heads=st.integers(1, 100), n_tokens=sizes)
def test_key_heads_leave_scores_alone(n_key_heads: int, n_tokens: int) -> None:
    """Sharing heads saves cache and weights in proportion to the heads, and no score."""
    one, shared = (attention_cost(AttentionKind.GQA, dimensions(n_key_heads=n), n_tokens) for n in (1, n_key_heads))
    assert shared.kv_elements == n_key_heads * one.kv_elements
    assert shared.attention_macs == one.attention_macs
    kept = 2 * n_tokens * FULL.n_embd**2
    assert shared.linear_macs - kept == n_key_heads * (one.linear_macs - kept)


@given(kind=st.sampled_from(AttentionKind), n_tokens=sizes)
def test_flops_are_two_a_mac_and_causal_scores_half(kind: AttentionKind, n_tokens: int) -> None:
    """A MAC is two FLOPs; what looks back only computes half of the scores, and all products with weights."""
    cost = attention_cost(kind, FULL, n_tokens)
    assert cost.flops(is_causal=False) == 2 * (cost.linear_macs + cost.attention_macs)
    assert cost.flops(is_causal=False) - cost.flops(is_causal=True) == cost.attention_macs


@pytest.mark.parametrize("kind", AttentionKind)
def test_a_missing_dimension_is_named(kind: AttentionKind) -> None:
    """Each kind refuses the absence of each size that its formula has, by name, and asks for no other."""
    for name in NEEDED[kind]:
        message = f"attention dimensions: {name} is None, expected an integer above 0 for {kind.value.upper()}"
        with pytest.raises(PerfsuiteError, match=message):
            attention_cost(kind, dimensions(**{name: None}), 1)
    others = set(AttentionDimensions.__dataclass_fields__) - NEEDED[kind] - {"n_embd", "n_heads"}
    assert attention_cost(kind, dimensions(**dict.fromkeys(others)), 7) == attention_cost(kind, FULL, 7)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "9"])
@pytest.mark.parametrize("name", AttentionDimensions.__dataclass_fields__)
def test_what_is_no_size_is_named(name: str, value: object) -> None:
    """Zero, negative numbers, fractions, truths and texts are refused with the field and the value."""
    with pytest.raises(PerfsuiteError, match=f"{name} is {value!r}, expected an integer above 0"):
        dimensions(**{name: value})


def test_the_width_and_the_heads_are_never_missing() -> None:
    """No formula goes without the embedding's width and the heads of the queries."""
    for name in ("n_embd", "n_heads"):
        with pytest.raises(PerfsuiteError, match=f"{name} is None, expected an integer above 0"):
            dimensions(**{name: None})


@pytest.mark.parametrize("name", ["smollm2-135m", "qwen2.5-1.5b", "attention-mha-135m", "attention-gqa-1.5b"])
def test_where_heads_fill_the_width_the_engine_agrees(name: str) -> None:
    """Its q, k, v and output products are GQA's linear MACs, its scores and mix the attention's, its cache the same."""
    a = find(name)
    assert a.n_heads * a.head_dim == a.n_embd
    graph = prompt_graph(a)
    cost = attention_cost(AttentionKind.GQA, of_architecture(a), N)
    assert product_macs(graph, "Qcur", "Kcur", "Vcur", "attn_out", layer=3) == cost.linear_macs
    assert product_macs(graph, "kq", "kqv", layer=3) == cost.attention_macs
    written = sum(each.cost.kv_written_bytes for each in graph if each.layer == 3)
    assert written == 2 * cost.kv_elements  # F16
    if a.n_heads == a.n_kv_heads:
        assert attention_cost(AttentionKind.MHA, of_architecture(a), N) == cost


def test_where_heads_are_wider_the_formula_is_short() -> None:
    """Qwen3-0.6B's queries are twice as wide as its embedding: the engine multiplies 2 H (2 H - H) more a token."""
    a = find("qwen3-0.6b")
    assert a.n_heads * a.head_dim == 2 * a.n_embd
    cost = attention_cost(AttentionKind.GQA, of_architecture(a), N)
    graph = prompt_graph(a)
    engine_macs = product_macs(graph, "Qcur", "Kcur", "Vcur", "attn_out", layer=3)
    assert engine_macs - cost.linear_macs == N * 2 * a.n_embd**2
    assert product_macs(graph, "kq", "kqv", layer=3) == cost.attention_macs


@pytest.mark.parametrize("name", ["attention-mla-135m", "attention-mla-1.5b", "plm-1.8b"])
def test_plm_computes_mla_and_caches_mha(name: str) -> None:
    """The engine's products are the formula's; its cache holds every head decompressed, the formula's the latent."""
    a = find(name)
    assert a.mla is not None
    graph, cost = prompt_graph(a), attention_cost(AttentionKind.MLA, of_architecture(a), N)
    roles = {each.role for each in graph if each.op == "MUL_MAT" and each.layer == 3}
    projections = roles - {"kq", "kqv", "ffn_up", "ffn_down", "ffn_out"}
    assert product_macs(graph, *projections, layer=3) == cost.linear_macs
    assert product_macs(graph, "kq", "kqv", layer=3) == cost.attention_macs
    written = sum(each.cost.kv_written_bytes for each in graph if each.layer == 3)
    assert written == 2 * N * a.n_heads * (a.head_dim + a.v_head_dim) > 2 * cost.kv_elements


@pytest.mark.parametrize("n_tokens", [0, -3, 2.0])
def test_a_length_is_a_count(n_tokens: Any) -> None:
    """A length that is no count is refused by name."""
    with pytest.raises(PerfsuiteError, match="attention cost: n_tokens is"):
        attention_cost(AttentionKind.MHA, FULL, n_tokens)
