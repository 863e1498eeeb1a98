"""One operator of an analytical graph, and what a graph is asked for: tokens of one evaluation, and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from perfsuite.errors import ArchitectureError
from perfsuite.records.op_cost import NO_COST, OpCost
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.ggml_types import GGML_TYPES

Shape = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorShape:
    """A tensor as a cost sees it: its ggml type in lower case and its dimensions, innermost first."""

    type: str
    ne: Shape

    @property
    def n_elements(self) -> int:
        """Product of the dimensions."""
        return prod(self.ne)

    @property
    def n_bytes(self) -> int:
        """Stored size in bytes, packed."""
        return row_bytes(self.type, self.ne[0]) * prod(self.ne[1:])


def row_bytes(type_name: str, n_elements: int) -> int:
    """Return the stored bytes of a row of `n_elements` of a ggml type, such as 1.0625 bytes an element for Q8_0."""
    kind = GGML_TYPES.get(type_name.upper())
    if kind is None:
        raise ArchitectureError(f"'{type_name}' is not a ggml type")
    return kind.row_bytes(n_elements)


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


def total_cost(operators: Iterable[Operator]) -> OpCost:
    """Sum the costs of operators."""
    return sum((operator.cost for operator in operators), start=NO_COST)


def with_distinct_roles(operators: Iterable[Operator]) -> Iterator[Operator]:
    """Let a later operator of another kind under the same name in a layer carry its operator (``Qcur_rope``)."""
    first: dict[tuple[str, int | None], str] = {}
    for operator in operators:
        if first.setdefault((operator.role, operator.layer), operator.op) == operator.op:
            yield operator
        else:
            yield replace(operator, role=f"{operator.role}_{operator.op.lower()}")


def shape(type_name: str, *ne: int) -> TensorShape:
    """Return a tensor's shape, dimensions that are not given being 1."""
    padded: Shape = (*ne, 1, 1, 1)[:4]  # type: ignore[assignment]
    return TensorShape(type=type_name.lower(), ne=padded)


#: The engine pads the visible KV cache to a multiple of this many positions.
KV_PADDING = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One graph evaluation: how many tokens enter, how many give logits, how much context they see."""

    n_tokens: int
    n_outputs: int
    #: Positions of each sequence's KV cache in use once the batch is in it.
    n_used: int
    #: Cells of the KV cache of a sequence.
    n_ctx: int
    #: Most tokens that the engine evaluates at once, by which it sizes the cache of a sliding window.
    n_ubatch: int = 512
    #: Sequences that the tokens are of, as many of each, and those that have a cache.
    n_sequences: int = 1
    n_caches: int = 1

    @property
    def n_kv(self) -> int:
        """Positions that attention works on: `n_used`, padded, and no more than the cache has."""
        return _visible(self.n_used, self.n_ctx)

    def window_cells(self, window: int) -> int:
        """Return the cells of a cache that keeps `window` positions: those, a batch, and padding; at most `n_ctx`.

        *Source*: ``llama_kv_cache_iswa`` in ``src/llama-kv-cache-iswa.cpp`` of llama-cpp-python 0.3.36.
        """
        return _padded(min(self.n_ctx, window + self.n_ubatch))

    def window_n_kv(self, window: int) -> int:
        """Return the positions that attention works on in a cache that keeps `window` of them; it is a ring."""
        cells = self.window_cells(window)
        return _visible(min(self.n_used, cells), cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the engine is asked for, beside the architecture."""

    flash_attn: bool = True
    type_k: str = "f16"
    type_v: str = "f16"
    #: Whether layers with a sliding window keep all positions in the cache, as the engine does by default.
    swa_full: bool = True
    #: Rank of a LoRA adapter on every matrix of the layers that the engine adapts; None for no adapter.
    lora_rank: int | None = None
    #: Type of the adapter's matrices; llama.cpp's converter writes F32 by default.
    lora_type: str = "f32"


def _padded(n_positions: int) -> int:
    return -(-n_positions // KV_PADDING) * KV_PADDING


def _visible(n_used: int, n_cells: int) -> int:
    return min(n_cells, max(KV_PADDING, _padded(n_used)))


def refusal(architecture: Architecture, settings: Settings) -> str | None:
    """Return why the engine makes no context with these settings, or None where it makes one."""
    return next(_refusals(architecture, settings), None)


def _refusals(architecture: Architecture, settings: Settings) -> Iterator[str]:
    for field in ("type_k", "type_v", "lora_type"):
        if getattr(settings, field).upper() not in GGML_TYPES:
            yield f"{field} is {getattr(settings, field)!r}, which is not a ggml type"
    if settings.lora_rank is not None and settings.lora_rank < 1:
        yield f"lora_rank is {settings.lora_rank}, expected a positive integer or None"
    absorbed = architecture.mla is not None and architecture.mla.absorbed
    if absorbed and settings.type_k != settings.type_v:
        yield f"absorbed latent attention keeps keys and values in one tensor, not {settings.type_k}, {settings.type_v}"
    if settings.flash_attn and not architecture.family.flash_attention:
        yield f"'{architecture.gguf_architecture}' cannot run with flash attention"
    if not settings.flash_attn and _block_values(settings.type_v) > 1:
        yield f"a quantised cache of values (type_v is {settings.type_v}) needs flash attention"
    for field, size in (("type_k", architecture.head_dim), ("type_v", architecture.v_head_dim)):
        if size % _block_values(getattr(settings, field)):
            yield f"{field} is {getattr(settings, field)}, whose block does not divide heads of {size}"


def _block_values(type_name: str) -> int:
    return GGML_TYPES[type_name.upper()].block_values
