"""The tensors that llama.cpp expects in a GGUF of a given architecture, by name and shape; and tensors in short.

In a short list what is alike in several layers is one row. A row's name has in the place of a layer's number the
numbers of all that have such a tensor, as in ``blk.0,2-5.attn_q.weight``, or a ``*`` where each layer has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from perfsuite.workload.families import FeedForward

if TYPE_CHECKING:
    from perfsuite.workload.architecture import Architecture, LatentAttention, MixtureOfExperts


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """A tensor's name and its extents in ggml's order, the contiguous one first."""

    name: str
    ne: tuple[int, ...]

    @property
    def n_elements(self) -> int:
        return prod(self.ne)

    @property
    def n_rows(self) -> int:
        """The number of contiguous rows of ``ne[0]`` values."""
        return prod(self.ne[1:])


def tensor_specs(architecture: Architecture) -> tuple[TensorSpec, ...]:
    """List every tensor of the architecture's GGUF, in the order of the file."""
    return tuple(TensorSpec(name=name, ne=ne) for name, ne in _tensors(architecture))


def parameters_of(tensors: Iterable[TensorSpec]) -> int:
    """Count trained weights; RoPE's frequency factors are constants and do not count."""
    return sum(spec.n_elements for spec in tensors if not spec.name.startswith("rope_"))


_NamedShapes = Iterator[tuple[str, tuple[int, ...]]]


def _tensors(architecture: Architecture) -> _NamedShapes:
    yield "token_embd.weight", (architecture.n_embd, architecture.n_vocab)
    if architecture.rope_freq_factors:
        for name in architecture.family.rope_factors:
            yield name, (architecture.n_rot // 2,)
    for layer in range(architecture.n_layers):
        for name, ne in _layer(architecture, layer):
            yield f"blk.{layer}.{name}", ne
    yield from _norm(architecture, "output_norm")
    if not architecture.tied_embeddings:
        yield "output.weight", (architecture.n_embd, architecture.n_vocab)


def _layer(architecture: Architecture, layer: int) -> _NamedShapes:
    yield from _norm(architecture, "attn_norm")
    if architecture.mla is not None:
        yield from _latent_attention(architecture, architecture.mla)
    else:
        yield from _attention(architecture)
    if architecture.family.post_norms:
        yield from _norm(architecture, "post_attention_norm")
    yield from _norm(architecture, "ffn_norm")
    if architecture.moe is not None and layer >= architecture.moe.n_dense_layers:
        yield from _experts(architecture, architecture.moe)
    else:
        yield from _dense(architecture)
    if architecture.family.post_norms:
        yield from _norm(architecture, "post_ffw_norm")


def _norm(architecture: Architecture, name: str) -> _NamedShapes:
    yield f"{name}.weight", (architecture.n_embd,)
    if architecture.family.layer_norm_with_bias:
        yield f"{name}.bias", (architecture.n_embd,)


def _matrix(name: str, n_in: int, n_out: int, *, bias: bool) -> _NamedShapes:
    yield f"{name}.weight", (n_in, n_out)
    if bias:
        yield f"{name}.bias", (n_out,)


def _attention(architecture: Architecture) -> _NamedShapes:
    n_embd, bias = architecture.n_embd, architecture.qkv_bias
    n_q = architecture.n_heads * architecture.head_dim
    n_k = architecture.n_kv_heads * architecture.head_dim
    n_v = architecture.n_kv_heads * architecture.v_head_dim
    if architecture.fused_qkv:
        yield from _matrix("attn_qkv", n_embd, n_q + n_k + n_v, bias=bias)
    else:
        for role, n_out in (("attn_q", n_q), ("attn_k", n_k), ("attn_v", n_v)):
            yield from _matrix(role, n_embd, n_out, bias=bias)
    if architecture.qk_norm:
        yield "attn_q_norm.weight", (architecture.head_dim,)
        yield "attn_k_norm.weight", (architecture.head_dim,)
    n_out = architecture.n_heads * architecture.v_head_dim
    yield from _matrix("attn_output", n_out, n_embd, bias=architecture.family.layer_norm_with_bias)


def _latent_attention(architecture: Architecture, mla: LatentAttention) -> _NamedShapes:
    n_embd, n_heads, rank = architecture.n_embd, architecture.n_heads, mla.kv_lora_rank
    n_q = n_heads * architecture.head_dim
    if mla.q_lora_rank is None:
        yield "attn_q.weight", (n_embd, n_q)
    else:
        yield "attn_q_a.weight", (n_embd, mla.q_lora_rank)
        yield "attn_q_a_norm.weight", (mla.q_lora_rank,)
        yield "attn_q_b.weight", (mla.q_lora_rank, n_q)
    yield "attn_kv_a_mqa.weight", (n_embd, rank + mla.qk_rope_head_dim)
    yield "attn_kv_a_norm.weight", (rank,)
    if mla.absorbed:
        yield "attn_k_b.weight", (mla.qk_nope_head_dim, rank, n_heads)
        yield "attn_v_b.weight", (rank, mla.v_head_dim, n_heads)
    else:
        yield "attn_kv_b.weight", (rank, n_heads * (mla.qk_nope_head_dim + mla.v_head_dim))
    yield "attn_output.weight", (n_heads * mla.v_head_dim, n_embd)


def _dense(architecture: Architecture) -> _NamedShapes:
    n_embd, n_ff, kind = architecture.n_embd, architecture.n_ff, architecture.family.feed_forward
    bias = architecture.family.layer_norm_with_bias
    if kind is FeedForward.GATED:
        yield from _matrix("ffn_gate", n_embd, n_ff, bias=bias)
    yield from _matrix("ffn_up", n_embd, 2 * n_ff if kind is FeedForward.FUSED_GATED else n_ff, bias=bias)
    yield from _matrix("ffn_down", n_ff, n_embd, bias=bias)


def _experts(architecture: Architecture, moe: MixtureOfExperts) -> _NamedShapes:
    n_embd, n_experts = architecture.n_embd, moe.n_experts
    yield "ffn_gate_inp.weight", (n_embd, n_experts)
    yield "ffn_gate_exps.weight", (n_embd, moe.n_ff_expert, n_experts)
    yield "ffn_up_exps.weight", (n_embd, moe.n_ff_expert, n_experts)
    yield "ffn_down_exps.weight", (moe.n_ff_expert, n_embd, n_experts)
    if architecture.family.gated_shared_expert:
        yield "ffn_gate_inp_shexp.weight", (n_embd,)
    yield "ffn_gate_shexp.weight", (n_embd, moe.n_ff_shared)
    yield "ffn_up_shexp.weight", (n_embd, moe.n_ff_shared)
    yield "ffn_down_shexp.weight", (moe.n_ff_shared, n_embd)


#: The number of a layer within a name, or the numbers in a row's.
_NUMBERS = re.compile(r"(?<=\.)(?:\d[\d,-]*|\*)(?=\.)")


def layer_of(name: str) -> int | None:
    """Return the number of the layer that a tensor belongs to, if to any."""
    found = _NUMBERS.search(name)
    return None if found is None else int(found[0])


def kind_of(name: str) -> str:
    """Return a tensor's name with a ``*`` for the number of its layer."""
    return _NUMBERS.sub("*", name)


def shortened(tensors: Iterable[TensorSpec], n_layers: int) -> Mapping[str, tuple[int, ...]]:
    """Return rows and their extents."""
    rows: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for spec in tensors:
        layers = rows.setdefault((kind_of(spec.name), spec.ne), [])
        layer = layer_of(spec.name)
        layers += [] if layer is None else [layer]
    return {kind.replace("*", _ranges(layers, n_layers)): ne for (kind, ne), layers in rows.items()}


def in_full(rows: Mapping[str, Sequence[int]], n_layers: int) -> tuple[TensorSpec, ...]:
    """Return the tensors of all rows: first those of no layer, then layer by layer."""
    order: dict[str, int] = {}
    found = [
        (order.setdefault(name.partition(".")[0], len(order)) if layer >= 0 else -1, layer, at, name, tuple(ne))
        for at, (row, ne) in enumerate(rows.items())
        for layer, name in _names(row, n_layers)
    ]
    return tuple(TensorSpec(name=name, ne=ne) for *_, name, ne in sorted(found))


def _names(row: str, n_layers: int) -> Iterator[tuple[int, str]]:
    found = _NUMBERS.search(row)
    if found is None:
        yield -1, row
        return
    for layer in _numbers(found[0], n_layers):
        yield layer, f"{row[: found.start()]}{layer}{row[found.end() :]}"


def _numbers(text: str, n_layers: int) -> Iterator[int]:
    for part in (f"0-{n_layers - 1}" if text == "*" else text).split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _ranges(layers: Sequence[int], n_layers: int) -> str:
    if list(layers) == list(range(n_layers)):
        return "*"
    starts = [at for at in layers if at - 1 not in layers]
    ends = [at for at in layers if at + 1 not in layers]
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in zip(starts, ends, strict=True))
