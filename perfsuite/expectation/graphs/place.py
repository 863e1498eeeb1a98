"""Where operators are written, and what a layer writes there: products with weights, norms, and its KV cache.

With an adapter of rank r the engine computes ``W x + s B (A x)``: a product with A (r rows), one with B, a scale and an
addition. The adapted product then has no name of its own and is called by its weight; the sum takes the name.

*Source*: ``build_lora_mm``, ``build_lora_mm_id`` and ``build_norm`` in ``src/llama-graph.cpp``,
``src/llama-kv-cache.cpp`` and ``src/llama-kv-cache-iswa.cpp`` of llama-cpp-python 0.3.36; ``ggml_cpu_try_fuse_ops`` in
``ggml/src/ggml-cpu/ggml-cpu.c`` for RMS_NORM and the product after it, which the CPU computes as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.graphs.operator import Batch, Operator, Settings, TensorShape, shape
from perfsuite.expectation.op_rules import cost_of
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.ggml_types import GGML_TYPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A layer, or what lies outside the layers, with all that its operators' shapes follow from."""

    architecture: Architecture
    #: The ggml type of each tensor of the file.
    tensor_types: Mapping[str, str]
    batch: Batch
    settings: Settings
    #: Tokens that flow through here.
    n: int
    #: Layer number; None outside the layers.
    layer: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether this is the last layer, from which only the rows that give logits go on."""
        return self.layer == self.architecture.n_layers - 1

    def at_layer(self, layer: int) -> Place:
        """Return a layer, all tokens of the batch flowing."""
        return replace(self, layer=layer, n=self.batch.n_tokens)

    def after_gather(self) -> Place:
        """Return this place once the rows that give logits were gathered, which only the last layer does."""
        return replace(self, n=self.batch.n_outputs) if self.is_last else self

    def activation(self, *ne: int) -> TensorShape:
        """Return the shape of an activation, the tokens being its last dimension."""
        return shape("f32", *ne, self.n)

    def by_sequence(self, type_name: str, first: int, third: int) -> TensorShape:
        """Return a shape of attention: the tokens of a sequence second, and the sequences last."""
        n_sequences = self.batch.n_sequences
        return shape(type_name, first, self.n // n_sequences, third, n_sequences)

    def cached(self, type_name: str, first: int, second: int, third: int) -> TensorShape:
        """Return the shape of what attention reads of the caches of the batch's sequences."""
        return shape(type_name, first, second, third, self.batch.n_sequences)

    def positions(self) -> TensorShape:
        """Return the shape of the tokens' positions."""
        return shape("i32", self.n)

    def tensor_name(self, tensor: str) -> str:
        """Return a tensor's name in the file, such as ``blk.3.attn_q.weight`` for ``attn_q.weight``."""
        return tensor if self.layer is None else f"blk.{self.layer}.{tensor}"

    def weight(self, tensor: str, *ne: int) -> TensorShape:
        """Return the shape of a tensor of this place, in the type that the file has it in."""
        return self.weight_named(self.tensor_name(tensor), *ne)

    def weight_named(self, name: str, *ne: int) -> TensorShape:
        """Return the shape of a tensor by its whole name; one that the file lacks raises ArchitectureError."""
        type_name = self.tensor_types.get(name)
        if type_name is None:
            raise ArchitectureError(
                f"{self.architecture.name}: the file has no tensor {name}, which its architecture needs"
            )
        return shape(type_name, *ne)

    def operator(
        self,
        role: str,
        op: str,
        output: TensorShape,
        sources: Sequence[TensorShape],
        *,
        is_weight: bool = False,
        kv_sources: Sequence[int] = (),
    ) -> Operator:
        """Write one operator with its cost; `is_weight` and `kv_sources` are those of `cost_of`."""
        cost = cost_of(op, output, sources, is_weight=is_weight, kv_sources=kv_sources)
        return Operator(role=role, op=op, layer=self.layer, output=output, sources=tuple(sources), cost=cost)

    def unary(self, role: str, op: str, x: TensorShape) -> Operator:
        """Write an operator on each element of `x`."""
        return self.operator(role, op, x, (x,))

    def add(self, role: str, width: int) -> Operator:
        """Write the sum of two activations."""
        x = self.activation(width)
        return self.operator(role, "ADD", x, (x, x))

    def bias(self, role: str, tensor: str, width: int) -> Operator:
        """Write the addition of a bias vector."""
        x = self.activation(width)
        return self.operator(role, "ADD", x, (x, self.weight(tensor, width)), is_weight=True)


def norm(place: Place, role: str, tensor: str) -> Iterator[Operator]:
    """Write the architecture's norm over the embedding."""
    if place.architecture.family.layer_norm_with_bias:
        yield from _layer_norm(place, role, tensor)
    else:
        yield rms_norm(place, role, tensor, place.architecture.n_embd)


def rms_norm(place: Place, role: str, tensor: str, *ne: int) -> Operator:
    """Write an RMS norm over the first of the dimensions `ne`, with its weight."""
    x = place.activation(*ne)
    return place.operator(role, "RMS_NORM+MUL", x, (x, place.weight(f"{tensor}.weight", ne[0])), is_weight=True)


def _layer_norm(place: Place, role: str, tensor: str) -> Iterator[Operator]:
    width = place.architecture.n_embd
    x = place.activation(width)
    yield place.unary("norm", "NORM", x)
    yield place.operator("norm_w", "MUL", x, (x, place.weight(f"{tensor}.weight", width)), is_weight=True)
    yield place.bias(role, f"{tensor}.bias", width)


#: What an unnamed product with a weight is called where that is not the weight's own name.
_ROLES_OF_WEIGHTS = {"attn_output": "attn_out", "output": "result_output", "token_embd": "result_output"}


def role_of_weight(weight: str) -> str:
    """Return the role of a product that the engine leaves unnamed, from its weight's name without ``.weight``."""
    return _ROLES_OF_WEIGHTS.get(weight, weight)


def product(place: Place, role: str, weight: str, n_in: int, n_out: int) -> Operator:
    """Write a product with a matrix that is never adapted."""
    sources = (place.weight(f"{weight}.weight", n_in, n_out), place.activation(n_in))
    return place.operator(role, "MUL_MAT", place.activation(n_out), sources, is_weight=True)


def linear(place: Place, role: str, weight: str, n_in: int, n_out: int) -> Iterator[Operator]:
    """Write a product with a matrix of a layer, and its adapter where there is one."""
    x, y = place.activation(n_in), place.activation(n_out)
    sources = (place.weight(f"{weight}.weight", n_in, n_out), x)
    yield from _adapted(place, role, role_of_weight(weight), y, sources, place.settings.lora_rank)


def expert_linear(
    place: Place, role: str, weight: str, n_in: int, n_out: int, *, is_routed: bool
) -> Iterator[Operator]:
    """Write a product with the matrices of each token's experts, and their adapters where there are any.

    `is_routed` says whether each expert has an input of its own (the way down) or all read the same (gate and up).
    """
    moe = place.architecture.moe
    assert moe is not None
    x, y = place.activation(n_in, moe.n_experts_used if is_routed else 1), place.activation(n_out, moe.n_experts_used)
    matrices = place.weight(f"{weight}.weight", n_in, n_out, moe.n_experts)
    sources = (matrices, x, shape("i32", moe.n_experts_used, place.n))
    yield from _adapted(place, role, weight, y, sources, place.settings.lora_rank)


def _adapted(
    place: Place, role: str, base: str, y: TensorShape, sources: tuple[TensorShape, ...], rank: int | None
) -> Iterator[Operator]:
    """Write a product, of experts where the third source chooses them; with an adapter it takes the name of `base`."""
    matrix, x, *chosen = sources
    op = "MUL_MAT_ID" if chosen else "MUL_MAT"
    yield place.operator(role if rank is None else base, op, y, sources, is_weight=True)
    if rank is None:
        return
    (n_in, n_out, *experts), kind = matrix.ne, place.settings.lora_type
    low = place.activation(rank, *(y.ne[1:2] if chosen else ()))
    down, up = shape(kind, n_in, rank, *experts), shape(kind, rank, n_out, *experts)
    yield place.operator(f"{base}_lora_a", op, low, (down, x, *chosen), is_weight=True)
    yield place.operator(f"{base}_lora_b", op, y, (up, low, *chosen), is_weight=True)
    yield place.unary(f"{base}_lora_b", "SCALE", y)
    yield place.operator(role, "ADD", y, (y, y))


#: The smallest Hadamard matrix, which values use; keys use the largest that divides their heads.
_ROTATION = 64

#: What a file of Gemma 2 that says no window has.
_DEFAULT_WINDOW = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCache:
    """What the cache of one layer holds."""

    #: Cells of all sequences, and those of one that attention works on.
    n_cells: int
    n_kv: int
    n_heads: int
    #: Sizes of a key and of a value in it.
    size_k: int
    size_v: int
    type_k: str
    type_v: str
    #: Size of the Hadamard matrix that turns queries and keys, and of that for values and what attention makes of
    #: them; None where they are stored as they are.
    rotation_k: int | None
    rotation_v: int | None

    @property
    def width_k(self) -> int:
        """Key elements of a position."""
        return self.n_heads * self.size_k

    @property
    def width_v(self) -> int:
        """Value elements of a position."""
        return self.n_heads * self.size_v


def cache_of(place: Place) -> KvCache:
    """Return the cache of a layer, which may be a smaller one for a sliding window."""
    a, batch, settings = place.architecture, place.batch, place.settings
    n_cells, n_kv = batch.n_ctx, batch.n_kv
    if (window := window_of(place)) is not None and not settings.swa_full:
        n_cells, n_kv = batch.window_cells(window), batch.window_n_kv(window)
    mla = a.mla if a.mla is not None and a.mla.absorbed else None
    # A latent head is stored as it is.
    turns_k, turns_v = (
        mla is None and _is_rotated(kind, size)
        for kind, size in ((settings.type_k, a.head_dim), (settings.type_v, a.v_head_dim))
    )
    return KvCache(
        n_cells=n_cells * batch.n_caches,
        n_kv=n_kv,
        n_heads=a.n_kv_heads,
        size_k=mla.kv_lora_rank + mla.qk_rope_head_dim if mla else a.head_dim,
        size_v=mla.kv_lora_rank if mla else a.v_head_dim,
        type_k=settings.type_k,
        type_v=settings.type_v,
        rotation_k=a.head_dim & -a.head_dim if turns_k else None,
        rotation_v=_ROTATION if turns_v else None,
    )


def window_of(place: Place) -> int | None:
    """Return the sliding window of a layer, which Gemma 2's even ones have; other windows the engine leaves unused."""
    a = place.architecture
    has_window = a.family.window_caches and place.layer is not None and place.layer % 2 == 0
    return (a.sliding_window or _DEFAULT_WINDOW) if has_window else None


def rotated(place: Place, role: str, size: int | None, *ne: int) -> Iterator[Operator]:
    """Write the transform of heads `ne` with a Hadamard matrix of `size`, if there is one."""
    if size is None:
        return
    n_rows = place.activation(*ne).n_elements // size
    x = shape("f32", size, n_rows)
    yield place.operator(f"{role}_rot", "FWHT", x, (shape("f32", size, size), x))


def store_keys(place: Place, cache: KvCache) -> Operator:
    """Write the batch's keys into the cache, a row for each token."""
    return _store(place, "cache_k", shape(cache.type_k, cache.width_k, cache.n_cells), cache.width_k, place.n)


def store_values(place: Place, cache: KvCache) -> Operator:
    """Write the batch's values into the cache: rows, or without flash attention each element to a place of its own."""
    width = cache.width_v
    if place.settings.flash_attn:
        return _store(place, "cache_v", shape(cache.type_v, width, cache.n_cells), width, place.n)
    return _store(place, "cache_v", shape(cache.type_v, 1, width * cache.n_cells), 1, width * place.n)


def _is_rotated(type_name: str, size: int) -> bool:
    """Whether the engine turns heads before it stores them: in a quantised cache, where a matrix fits."""
    return GGML_TYPES[type_name.upper()].block_values > 1 and size % _ROTATION == 0


def _store(place: Place, role: str, cells: TensorShape, width: int, n_rows: int) -> Operator:
    sources = (shape("f32", width, n_rows), shape("i64", n_rows), cells)
    return place.operator(role, "SET_ROWS", cells, sources, kv_sources=(2,))
