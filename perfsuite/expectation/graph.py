"""The analytical graph: every operator that llama.cpp computes for a batch, from the architecture alone.

Roles are ggml's tensor names with the layer number dropped (``ffn_gate``, ``Qcur``); where one name serves two
operators of a layer, the later one carries its operator (``Qcur_rope``); a tensor that the engine leaves unnamed is
called by its operator or by its weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.op_cost import NO_COST, OpCost, Shape, TensorShape, cost_of
from perfsuite.workload.architecture import Architecture

#: GGUF architectures whose graph is known here; the others are measured by phase.
KNOWN_GRAPHS = frozenset({"llama", "qwen2", "qwen3"})

#: The engine pads the visible KV cache to a multiple of this many positions.
KV_PADDING = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One graph evaluation: how many tokens enter, how many give logits, how much context they see."""

    n_tokens: int
    n_outputs: int
    #: Positions of the KV cache in use once the batch is in it.
    n_used: int
    #: Cells of the KV cache.
    n_ctx: int

    @property
    def n_kv(self) -> int:
        """Positions that attention works on: `n_used`, padded, and no more than the cache has."""
        return min(self.n_ctx, max(KV_PADDING, -(-self.n_used // KV_PADDING) * KV_PADDING))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the engine is asked for, beside the architecture."""

    flash_attn: bool = True
    type_k: str = "f16"
    type_v: str = "f16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One operator of the analytical graph."""

    role: str
    op: str
    #: Layer number; None for what lies outside the layers.
    layer: int | None
    output: TensorShape
    sources: tuple[TensorShape, ...]
    cost: OpCost


def engine_graph(
    architecture: Architecture, tensor_types: Mapping[str, str], batch: Batch, settings: Settings
) -> tuple[Operator, ...]:
    """List every operator that llama.cpp computes for `batch`, fused pairs as one.

    Raises
    ------
    ArchitectureError
        The graph of this GGUF architecture is not known.
    """
    if architecture.gguf_architecture not in KNOWN_GRAPHS:
        raise ArchitectureError(
            f"{architecture.name}: the graph of '{architecture.gguf_architecture}' is not known; "
            f"known are {', '.join(sorted(KNOWN_GRAPHS))}"
        )
    return tuple(_Builder(architecture, tensor_types, batch, settings).operators())


def total_cost(operators: Iterator[Operator] | tuple[Operator, ...]) -> OpCost:
    """Sum the costs of operators."""
    return sum((operator.cost for operator in operators), start=NO_COST)


class _Builder:
    """Writes the operators of one batch in the order of the engine's own builders."""

    def __init__(
        self, architecture: Architecture, tensor_types: Mapping[str, str], batch: Batch, settings: Settings
    ) -> None:
        self._a = architecture
        self._types = tensor_types
        self._batch = batch
        self._settings = settings

    def operators(self) -> Iterator[Operator]:
        a, n_outputs = self._a, self._batch.n_outputs
        table = self._weight("token_embd.weight", a.n_embd, a.n_vocab)
        tokens = _shape("i32", self._batch.n_tokens)
        yield _operator("embd", "GET_ROWS", None, self._activation(), (table, tokens), is_weight=True)
        for layer in range(a.n_layers):
            yield from self._attention(layer)
            yield from self._feed_forward(layer)
        yield self._norm("result_norm", "output_norm.weight", None, (a.n_embd, n_outputs))
        output = "token_embd.weight" if a.tied_embeddings else "output.weight"
        yield self._linear("result_output", output, None, a.n_embd, a.n_vocab, n_outputs)

    def _attention(self, layer: int) -> Iterator[Operator]:
        a, n = self._a, self._batch.n_tokens
        yield self._norm("attn_norm", f"blk.{layer}.attn_norm.weight", layer, (a.n_embd, n))
        for letter, n_heads, size in (
            ("q", a.n_heads, a.head_dim),
            ("k", a.n_kv_heads, a.head_dim),
            ("v", a.n_kv_heads, a.v_head_dim),
        ):
            yield from self._projection(letter, n_heads, size, layer)
        yield from self._store(layer)
        yield from self._flash_scores(layer) if self._settings.flash_attn else self._eager_scores(layer)
        weight = f"blk.{layer}.attn_output.weight"
        yield self._linear("attn_out", weight, layer, a.n_heads * a.v_head_dim, a.n_embd, n)

    def _projection(self, letter: str, n_heads: int, size: int, layer: int) -> Iterator[Operator]:
        a, n = self._a, self._batch.n_tokens
        role = f"{letter.upper()}cur"
        width = n_heads * size
        yield self._linear(role, f"blk.{layer}.attn_{letter}.weight", layer, a.n_embd, width, n)
        if a.qkv_bias:
            x, bias = _shape("f32", width, n), self._weight(f"blk.{layer}.attn_{letter}.bias", width)
            yield _operator(f"{role}_add", "ADD", layer, x, (x, bias), is_weight=False)
        if letter == "v":
            return
        if a.qk_norm:
            name = f"blk.{layer}.attn_{letter}_norm.weight"
            yield self._norm(f"{role}_normed", name, layer, (size, n_heads, n))
        heads = _shape("f32", size, n_heads, n)
        positions = _shape("i32", n)
        factors = (self._weight("rope_freqs.weight", a.n_rot // 2),) if a.rope_freq_factors else ()
        yield _operator(f"{role}_rope", "ROPE", layer, heads, (heads, positions, *factors))

    def _store(self, layer: int) -> Iterator[Operator]:
        a, n, cells = self._a, self._batch.n_tokens, self._batch.n_ctx
        width_k, width_v = a.n_kv_heads * a.head_dim, a.n_kv_heads * a.v_head_dim
        cache_k = _shape(self._settings.type_k, width_k, cells)
        yield _operator("cache_k", "SET_ROWS", layer, cache_k, (_shape("f32", width_k, n), _shape("i64", n), cache_k))
        if self._settings.flash_attn:
            cache_v = _shape(self._settings.type_v, width_v, cells)
            sources = (_shape("f32", width_v, n), _shape("i64", n), cache_v)
        else:  # transposed, so that each element goes to a place of its own
            cache_v = _shape(self._settings.type_v, 1, width_v * cells)
            sources = (_shape("f32", 1, width_v * n), _shape("i64", width_v * n), cache_v)
        yield _operator("cache_v", "SET_ROWS", layer, cache_v, sources)

    def _flash_scores(self, layer: int) -> Iterator[Operator]:
        a, n, n_kv = self._a, self._batch.n_tokens, self._batch.n_kv
        sources = (
            _shape("f32", a.head_dim, n, a.n_heads),
            _shape(self._settings.type_k, a.head_dim, n_kv, a.n_kv_heads),
            _shape(self._settings.type_v, a.v_head_dim, n_kv, a.n_kv_heads),
            _shape("f16", n_kv, n),
        )
        yield _operator("flash_attn_ext", "FLASH_ATTN_EXT", layer, _shape("f32", a.v_head_dim, a.n_heads, n), sources)

    def _eager_scores(self, layer: int) -> Iterator[Operator]:
        a, n, n_kv = self._a, self._batch.n_tokens, self._batch.n_kv
        keys = _shape(self._settings.type_k, a.head_dim, n_kv, a.n_kv_heads)
        values = _shape(self._settings.type_v, n_kv, a.v_head_dim, a.n_kv_heads)
        query = _shape("f32", a.head_dim, n, a.n_heads)
        scores = _shape("f32", n_kv, n, a.n_heads)
        mixed = _shape("f32", a.v_head_dim, n, a.n_heads)
        yield _operator("kq", "MUL_MAT", layer, scores, (keys, query))
        yield _operator("kq_soft_max", "SOFT_MAX", layer, scores, (scores, _shape("f32", n_kv, n)))
        yield _operator("kqv", "MUL_MAT", layer, mixed, (values, scores))
        gathered = _shape("f32", a.v_head_dim, a.n_heads, n)
        yield _operator("kqv_out", "CONT", layer, _shape("f32", a.n_heads * a.v_head_dim, n), (gathered,))

    def _feed_forward(self, layer: int) -> Iterator[Operator]:
        a, n = self._a, self._batch.n_tokens
        if layer == a.n_layers - 1:  # only the rows that give logits go on
            n = self._batch.n_outputs
            rows = (self._activation(), _shape("i32", n))
            for role in ("attn_out_rows", "residual_rows"):
                yield _operator(role, "GET_ROWS", layer, _shape("f32", a.n_embd, n), rows)
        x, wide = _shape("f32", a.n_embd, n), _shape("f32", a.n_ff, n)
        yield _operator("ffn_inp", "ADD", layer, x, (x, x))
        yield self._norm("ffn_norm", f"blk.{layer}.ffn_norm.weight", layer, (a.n_embd, n))
        for role in ("ffn_gate", "ffn_up"):
            yield self._linear(role, f"blk.{layer}.{role}.weight", layer, a.n_embd, a.n_ff, n)
        yield _operator("ffn_swiglu", "SWIGLU", layer, wide, (wide, wide))
        yield self._linear("ffn_out", f"blk.{layer}.ffn_down.weight", layer, a.n_ff, a.n_embd, n)
        yield _operator("l_out", "ADD", layer, x, (x, x))

    def _activation(self) -> TensorShape:
        return _shape("f32", self._a.n_embd, self._batch.n_tokens)

    def _weight(self, name: str, *ne: int) -> TensorShape:
        type_name = self._types.get(name)
        if type_name is None:
            raise ArchitectureError(f"{self._a.name}: the file has no tensor {name}, which its architecture needs")
        return _shape(type_name, *ne)

    def _linear(self, role: str, name: str, layer: int | None, n_in: int, n_out: int, n: int) -> Operator:
        sources = (self._weight(name, n_in, n_out), _shape("f32", n_in, n))
        return _operator(role, "MUL_MAT", layer, _shape("f32", n_out, n), sources, is_weight=True)

    def _norm(self, role: str, name: str, layer: int | None, ne: tuple[int, ...]) -> Operator:
        x = _shape("f32", *ne)
        return _operator(role, "RMS_NORM+MUL", layer, x, (x, self._weight(name, ne[0])), is_weight=True)


def _shape(type_name: str, *ne: int) -> TensorShape:
    padded: Shape = (*ne, 1, 1, 1)[:4]  # type: ignore[assignment]
    return TensorShape(type=type_name.lower(), ne=padded)


def _operator(
    role: str,
    op: str,
    layer: int | None,
    output: TensorShape,
    sources: tuple[TensorShape, ...],
    *,
    is_weight: bool = False,
) -> Operator:
    cost = cost_of(op, output, sources, is_weight=is_weight)
    return Operator(role=role, op=op, layer=layer, output=output, sources=sources, cost=cost)
