"""How a layer of each GGUF architecture joins its blocks.

*Source*: ``src/models/<gguf_architecture>.cpp`` of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from perfsuite.expectation.graphs.attention import attention, output_projection
from perfsuite.expectation.graphs.experts import mixture_of_experts
from perfsuite.expectation.graphs.feed_forward import feed_forward
from perfsuite.expectation.graphs.latent_attention import absorbed_attention, decompressed_attention
from perfsuite.expectation.graphs.norms import norm
from perfsuite.expectation.graphs.operator import Operator, shape
from perfsuite.expectation.graphs.place import Place

LayerGraph = Callable[[Place], Iterator[Operator]]


def _pre_norm(place: Place) -> Iterator[Operator]:
    """Write attention and feed-forward, each behind a norm and beside a residual (Llama, Qwen, DeepSeek, PLM)."""
    yield from norm(place, "attn_norm", "attn_norm")
    yield from _any_attention(place)
    yield from _after_attention(place)


def _phi3(place: Place) -> Iterator[Operator]:
    """Write a layer of Phi 3, which scales its queries and leaves the first residual sum unnamed."""
    n_embd = place.architecture.n_embd
    yield from norm(place, "attn_norm", "attn_norm")
    yield from attention(place, scales_queries=True)
    yield from output_projection(place)
    yield from _gathered(place, "attn_out_rows", "residual_rows")
    place = place.after_gather()
    yield place.add("attn_out", n_embd)
    yield from norm(place, "ffn_norm", "ffn_norm")
    yield from feed_forward(place)
    yield place.add("l_out", n_embd)


def _gemma2(place: Place) -> Iterator[Operator]:
    """Write a layer of Gemma 2, with norms behind attention and feed-forward too; the engine numbers all but one."""
    n_embd = place.architecture.n_embd
    yield from norm(place, "attn_norm", "attn_norm")
    yield from attention(place, scales_queries=True)
    yield from output_projection(place)
    yield from _gathered(place, "attn_out_rows")
    after = place.after_gather()
    yield from norm(after, "attn_post_norm", "post_attention_norm")
    yield from _gathered(place, "residual_rows")
    yield after.add("sa_out", n_embd)
    yield from norm(after, "ffn_norm", "ffn_norm")
    yield from feed_forward(after)
    yield from (replace(each, layer=None) for each in norm(after, "ffn_post_norm", "post_ffw_norm"))
    yield after.add("l_out", n_embd)


def _gptneox(place: Place) -> Iterator[Operator]:
    """Write a layer of GPT-NeoX; in its parallel form the feed-forward comes before attention's output projection."""
    n_embd = place.architecture.n_embd
    yield from norm(place, "attn_norm", "attn_norm")
    yield from attention(place)
    if not place.architecture.parallel_residual:
        yield from _after_attention(place)
        return
    after = place.after_gather()
    yield from _gathered(place, "residual_rows")
    yield from norm(after, "ffn_norm", "ffn_norm")
    yield from feed_forward(after)
    yield after.add("ffn_out", n_embd)
    yield from output_projection(place)
    yield from _gathered(place, "attn_out_rows")
    yield after.add("l_out", n_embd)


def _after_attention(place: Place) -> Iterator[Operator]:
    n_embd = place.architecture.n_embd
    yield from output_projection(place)
    yield from _gathered(place, "attn_out_rows", "residual_rows")
    place = place.after_gather()
    yield place.add("ffn_inp", n_embd)
    yield from norm(place, "ffn_norm", "ffn_norm")
    yield from _any_feed_forward(place)
    yield place.add("l_out", n_embd)


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


def _gathered(place: Place, *roles: str) -> Iterator[Operator]:
    """Write the gathers of the rows that give logits, in the last layer."""
    if not place.is_last:
        return
    n_embd, n_outputs = place.architecture.n_embd, place.batch.n_outputs
    for role in roles:
        sources = (place.activation(n_embd), shape("i32", n_outputs))
        yield place.operator(role, "GET_ROWS", shape("f32", n_embd, n_outputs), sources)


#: How the layers of each known GGUF architecture are built.
LAYER_GRAPHS: Mapping[str, LayerGraph] = MappingProxyType(
    {
        **dict.fromkeys(("llama", "qwen2", "qwen3", "qwen2moe", "deepseek2", "plm"), _pre_norm),
        "gemma2": _gemma2,
        "gptneox": _gptneox,
        "phi3": _phi3,
    }
)
