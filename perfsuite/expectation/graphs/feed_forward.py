"""Feed-forward blocks, dense or routed to experts."""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.graphs.linear import expert_linear, linear
from perfsuite.expectation.graphs.operator import Operator, shape
from perfsuite.expectation.graphs.place import Place
from perfsuite.workload.architecture import MixtureOfExperts
from perfsuite.workload.families import FeedForward

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
