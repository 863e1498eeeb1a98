"""How a layer joins its blocks; what differs between GGUF architectures are traits of their `Family`.

*Source*: ``src/models/<gguf_architecture>.cpp`` of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perfsuite.expectation.graphs.attention import attention, output_projection
from perfsuite.expectation.graphs.feed_forward import feed_forward, mixture_of_experts
from perfsuite.expectation.graphs.latent_attention import absorbed_attention, decompressed_attention
from perfsuite.expectation.graphs.norms import norm
from perfsuite.expectation.graphs.operator import Operator, shape
from perfsuite.expectation.graphs.place import Place


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
