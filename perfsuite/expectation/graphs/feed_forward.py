"""Dense feed-forward blocks: gated in two matrices or one, or plain.

*Source*: ``build_ffn`` in ``src/llama-graph.cpp`` of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfsuite.expectation.graphs.linear import linear
from perfsuite.expectation.graphs.operator import Operator
from perfsuite.expectation.graphs.place import Place
from perfsuite.workload.families import FeedForward

#: Name and operator of a gate's activation times the other half, by the family's activation.
GATED_ACTIVATIONS = {"silu": ("swiglu", "SWIGLU"), "gelu": ("geglu", "GEGLU")}

_PLAIN_ACTIVATIONS = {
    "gelu": (("ffn_gelu", "GELU"),),
    "relu_squared": (("ffn_relu", "RELU"), ("ffn_sqr(relu)", "SQR")),
}


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
