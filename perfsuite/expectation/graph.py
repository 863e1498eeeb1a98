"""The analytical graph: every operator that llama.cpp computes for a batch, from the architecture alone.

Roles are ggml's tensor names with the layer number dropped (``ffn_gate``, ``Qcur``); where one name serves two
operators of a layer, the later one carries its operator (``Qcur_rope``). A tensor that the engine leaves unnamed is
called by its weight (``attn_out``), by the rows that it gathers, or by the tensor that it is made from, and then too
carries its operator (``Qcur_scale``); a rotation for a quantised cache is ``Qcur_rot``.

How a layer joins its blocks; what differs between GGUF architectures are traits of their `Family`.

*Source*: ``src/models/<gguf_architecture>.cpp`` of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.graphs.attention import (
    absorbed_attention,
    attention,
    decompressed_attention,
    output_projection,
)
from perfsuite.expectation.graphs.operator import (
    KV_PADDING,
    Batch,
    Operator,
    Settings,
    refusal,
    shape,
    total_cost,
    with_distinct_roles,
)
from perfsuite.expectation.graphs.place import Place, expert_linear, linear, norm, product
from perfsuite.workload.architecture import Architecture, MixtureOfExperts
from perfsuite.workload.families import FAMILIES, FeedForward

#: Name and operator of a gate's activation times the other half, by the family's activation.
GATED_ACTIVATIONS = {"silu": ("swiglu", "SWIGLU"), "gelu": ("geglu", "GEGLU")}

_PLAIN_ACTIVATIONS = {"gelu": (("ffn_gelu", "GELU"),), "relu_squared": (("ffn_relu", "RELU"), ("ffn_sqr(relu)", "SQR"))}


def feed_forward(place: Place) -> Iterator[Operator]:
    """Write the dense block of a layer, from the norm's output to the width of the embedding."""
    a = place.architecture
    if a.family.feed_forward is FeedForward.GATED:
        yield from gated(place, "ffn_out", a.n_ff)
    elif a.family.feed_forward is FeedForward.FUSED_GATED:
        yield from _fused_gated(place)
    else:
        yield from _plain(place)


def gated(place: Place, role: str, n_ff: int, *, suffix: str = "") -> Iterator[Operator]:
    """Write a block with a gate and a way up of their own; `suffix` ends its weights' names (``_shexp``)."""
    a = place.architecture
    wide = place.activation(n_ff)
    name, op = GATED_ACTIVATIONS[a.family.activation]
    for way in ("ffn_gate", "ffn_up"):
        yield from linear(place, way, f"{way}{suffix}", a.n_embd, n_ff)
    yield place.operator(f"ffn_{name}", op, wide, (wide, wide))
    yield from linear(place, role, f"ffn_down{suffix}", n_ff, a.n_embd)


def _fused_gated(place: Place) -> Iterator[Operator]:
    a = place.architecture
    name, op = GATED_ACTIVATIONS[a.family.activation]
    yield from linear(place, "ffn_up", "ffn_up", a.n_embd, 2 * a.n_ff)
    yield place.operator(f"ffn_{name}", op, place.activation(a.n_ff), (place.activation(2 * a.n_ff),))
    yield from linear(place, "ffn_out", "ffn_down", a.n_ff, a.n_embd)


def _plain(place: Place) -> Iterator[Operator]:
    a, has_bias = place.architecture, place.architecture.family.layer_norm_with_bias
    yield from linear(place, "ffn_up", "ffn_up", a.n_embd, a.n_ff)
    if has_bias:
        yield place.bias("ffn_up_b", "ffn_up.bias", a.n_ff)
    for role, op in _PLAIN_ACTIVATIONS[a.family.activation]:
        yield place.unary(role, op, place.activation(a.n_ff))
    yield from linear(place, "ffn_down" if has_bias else "ffn_out", "ffn_down", a.n_ff, a.n_embd)
    if has_bias:
        yield place.bias("ffn_out", "ffn_down.bias", a.n_embd)


def mixture_of_experts(place: Place, moe: MixtureOfExperts) -> Iterator[Operator]:
    """Write the routed block of a layer and its shared expert, from the norm's output to the width of the embedding."""
    yield from _router(place, moe)
    yield from _routed_experts(place, moe)
    if place.architecture.family.gated_shared_expert:
        yield from _gated_shared_expert(place, moe)
    else:
        yield from gated(place, "ffn_shexp", moe.n_ff_shared, suffix="_shexp")
    yield place.add("ffn_out", place.architecture.n_embd)


def _router(place: Place, moe: MixtureOfExperts) -> Iterator[Operator]:
    n, n_used = place.n, moe.n_experts_used
    logits, weights = place.activation(moe.n_experts), place.activation(1, n_used)
    yield from linear(place, "ffn_moe_logits", "ffn_gate_inp", place.architecture.n_embd, moe.n_experts)
    yield place.unary("ffn_moe_probs", "SOFT_MAX", logits)
    yield place.operator("ffn_moe_argsort", "ARGSORT", shape("i32", moe.n_experts, n), (logits,))
    chosen = (place.activation(1, moe.n_experts), shape("i32", n_used, n))
    yield place.operator("ffn_moe_weights", "GET_ROWS", weights, chosen)
    if moe.normalize_weights:
        yield from _normalized(place, n_used)
    if moe.weights_scale != 1.0:
        yield place.unary("ffn_moe_weights_scaled", "SCALE", weights)


def _normalized(place: Place, n_used: int) -> Iterator[Operator]:
    weights, total = place.activation(n_used), place.activation(1)
    yield place.operator("ffn_moe_weights_sum", "SUM_ROWS", total, (weights,))
    yield place.unary("ffn_moe_weights_sum_clamped", "CLAMP", total)
    yield place.operator("ffn_moe_weights_norm", "DIV", weights, (weights, total))


def _routed_experts(place: Place, moe: MixtureOfExperts) -> Iterator[Operator]:
    a, n_used = place.architecture, moe.n_experts_used
    wide, x = place.activation(moe.n_ff_expert, n_used), place.activation(a.n_embd, n_used)
    name, op = GATED_ACTIVATIONS[a.family.activation]
    for way in ("gate", "up"):
        role, weight = f"ffn_moe_{way}", f"ffn_{way}_exps"
        yield from expert_linear(place, role, weight, a.n_embd, moe.n_ff_expert, is_routed=False)
    yield place.operator(f"ffn_moe_{name}", op, wide, (wide, wide))
    yield from expert_linear(place, "ffn_moe_down", "ffn_down_exps", moe.n_ff_expert, a.n_embd, is_routed=True)
    yield place.operator("ffn_moe_weighted", "MUL", x, (x, place.activation(1, n_used)))
    if n_used == 1:
        yield place.unary("ffn_moe_out", "CONT", place.activation(a.n_embd))
    for number in range(1, n_used):
        yield place.add("ffn_moe_out" if number == n_used - 1 else "ffn_moe_weighted", a.n_embd)


def _gated_shared_expert(place: Place, moe: MixtureOfExperts) -> Iterator[Operator]:
    """Write the shared expert of Qwen's, whose output is scaled by a sigmoid: silu(x) / x."""
    n_embd = place.architecture.n_embd
    x, gate = place.activation(n_embd), place.activation(1)
    yield from gated(place, "ffn_shexp", moe.n_ff_shared, suffix="_shexp")
    yield from linear(place, "ffn_shexp_gate_inp", "ffn_gate_inp_shexp", n_embd, 1)
    yield place.unary("ffn_shexp_gate_inp", "SILU", gate)
    yield place.operator("ffn_shexp_gate", "DIV", gate, (gate, gate))
    yield place.operator("ffn_shexp_out", "MUL", x, (x, gate))


__all__ = [
    "KNOWN_GRAPHS",
    "KV_PADDING",
    "Batch",
    "Operator",
    "Settings",
    "engine_graph",
    "layer_operators",
    "refusal",
    "total_cost",
]


def layer_operators(place: Place) -> Iterator[Operator]:
    """Write attention and feed-forward, each behind a norm and beside a residual."""
    yield from norm(place, "attn_norm", "attn_norm")
    yield from _any_attention(place)
    yield from _parallel(place) if place.architecture.parallel_residual else _in_turn(place)


def _in_turn(place: Place) -> Iterator[Operator]:
    """Let feed-forward read what attention made of the residual."""
    n_embd, family = place.architecture.n_embd, place.architecture.family
    after = place.after_gather()
    yield from output_projection(place)
    yield from _gathered(place, "attn_out_rows")
    if family.post_norms:
        yield from norm(after, "attn_post_norm", "post_attention_norm")
    yield from _gathered(place, "residual_rows")
    yield after.add(family.attention_sum, n_embd)
    yield from norm(after, "ffn_norm", "ffn_norm")
    yield from _any_feed_forward(after)
    if family.post_norms:  # the engine numbers all but this one
        yield from (replace(each, layer=None) for each in norm(after, "ffn_post_norm", "post_ffw_norm"))
    yield after.add("l_out", n_embd)


def _parallel(place: Place) -> Iterator[Operator]:
    """Let feed-forward read what attention read; it comes before attention's output projection."""
    n_embd = place.architecture.n_embd
    after = place.after_gather()
    yield from _gathered(place, "residual_rows")
    yield from norm(after, "ffn_norm", "ffn_norm")
    yield from _any_feed_forward(after)
    yield after.add("ffn_out", n_embd)
    yield from output_projection(place)
    yield from _gathered(place, "attn_out_rows")
    yield after.add("l_out", n_embd)


def _any_attention(place: Place) -> Iterator[Operator]:
    mla = place.architecture.mla
    if mla is None:
        return attention(place)
    return absorbed_attention(place, mla) if mla.absorbed else decompressed_attention(place, mla)


def _any_feed_forward(place: Place) -> Iterator[Operator]:
    moe = place.architecture.moe
    if moe is None or (place.layer or 0) < moe.n_dense_layers:
        return feed_forward(place)
    return mixture_of_experts(place, moe)


def _gathered(place: Place, role: str) -> Iterator[Operator]:
    if place.is_last:
        n_embd, n_outputs = place.architecture.n_embd, place.batch.n_outputs
        sources = (place.activation(n_embd), shape("i32", n_outputs))
        yield place.operator(role, "GET_ROWS", shape("f32", n_embd, n_outputs), sources)


#: GGUF architectures whose graph is known here; others would be measured by phase.
KNOWN_GRAPHS = frozenset(FAMILIES)


def engine_graph(
    architecture: Architecture, tensor_types: Mapping[str, str], batch: Batch, settings: Settings
) -> tuple[Operator, ...]:
    """List every operator that llama.cpp computes for `batch`, in its order, fused pairs as one.

    Raises ArchitectureError: the engine refuses the settings for this architecture.
    """
    if reason := refusal(architecture, settings):
        raise ArchitectureError(f"{architecture.name}: {reason}")
    place = Place(
        architecture=architecture, tensor_types=tensor_types, batch=batch, settings=settings, n=batch.n_tokens
    )
    return tuple(with_distinct_roles(_operators(place)))


def _operators(place: Place) -> Iterator[Operator]:
    a = place.architecture
    yield from _embedding(place)
    for layer in range(a.n_layers):
        yield from layer_operators(place.at_layer(layer))
    yield from _logits(place)


def _embedding(place: Place) -> Iterator[Operator]:
    a = place.architecture
    x, table = place.activation(a.n_embd), place.weight("token_embd.weight", a.n_embd, a.n_vocab)
    yield place.operator("embd", "GET_ROWS", x, (table, shape("i32", place.n)), is_weight=True)
    if a.family.scales_embeddings:
        yield place.unary("inp_scaled", "SCALE", x)


def _logits(place: Place) -> Iterator[Operator]:
    a = place.architecture
    place = replace(place, n=place.batch.n_outputs)
    yield from norm(place, "result_norm", "output_norm")
    weight = "token_embd" if a.tied_embeddings else "output"
    yield product(place, "result_output", weight, a.n_embd, a.n_vocab)
    if a.family.soft_caps:  # a file that says no caps has the engine's
        for op in ("SCALE", "TANH", "SCALE"):
            yield place.unary("result_output", op, place.activation(a.n_vocab))
