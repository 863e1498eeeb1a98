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
from perfsuite.expectation.graphs.attention import attention, output_projection
from perfsuite.expectation.graphs.feed_forward import feed_forward, mixture_of_experts
from perfsuite.expectation.graphs.latent_attention import absorbed_attention, decompressed_attention
from perfsuite.expectation.graphs.linear import norm, product
from perfsuite.expectation.graphs.operator import Operator, shape, total_cost, with_distinct_roles
from perfsuite.expectation.graphs.place import Place
from perfsuite.expectation.graphs.request import KV_PADDING, Batch, Settings, refusal
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.families import FAMILIES

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
    """Write the gather of the rows that give logits, in the last layer."""
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
