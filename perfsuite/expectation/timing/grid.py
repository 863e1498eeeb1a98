"""Which operators a calibration measures: enough shapes to show what a time grows with, chosen by size alone.

No model's list is among them, though models share some of their squares, such as 2048 x 2048.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from perfsuite.expectation.graphs.operator import KV_PADDING
from perfsuite.expectation.timing.features import family
from perfsuite.expectation.timing.operator_shape import SCALED_ROWS, OperatorShape

#: Weight types that the catalogue's usual quantisations hold.
STANDARD_TYPES = ("f32", "f16", "q8_0", "q4_0", "q4_k", "q5_0", "q5_1", "q5_k", "q6_k")
#: Types whose experts are measured too.
EXPERT_TYPES = tuple(name for name in STANDARD_TYPES if name != "f32")

#: Rows of activations at which everything is measured; between them times are interpolated. Products of 2 to 7 rows,
#: as of sequences side by side and of drafts, take their rows in fours, and what is left one by one.
TOKEN_LEVELS = (1, 8, 32, 128, 512)
_PRODUCT_LEVELS = (1, 2, 3, 4, 8, 32, 128, 512)
_ATTENTION_LEVELS = (1, 8, 32, 64, 128, 512)
_ROW_LEVELS = (1, 8, 64, 512)

#: Columns and rows of the weights: square, wide and tall, from less than a cache to a feed-forward block of a billion.
_WEIGHT_SHAPES = (
    *((512, 512), (2048, 512), (1024, 1024), (768, 3072)),
    *((2560, 768), (2048, 2048), (1280, 5120), (6144, 2048)),
)
#: Matrices of floats that are narrow or flat: adapters, routers, and what decays and gates of states are made of.
_NARROW_SHAPES = ((64, 1024), (1024, 64), (128, 2560), (2560, 160))
#: Columns, rows, experts, experts a token.
_EXPERT_SHAPES = ((1024, 1024, 16, 2), (2048, 1024, 32, 4), (1024, 1536, 48, 8), (1536, 1536, 24, 6))
#: Elements of a head, heads, heads of the cache, positions before.
_ATTENTION_SHAPES = (
    *((64, 8, 4, 0), (64, 16, 16, 192), (64, 24, 8, 960), (64, 12, 2, 300)),
    *((128, 8, 8, 64), (128, 16, 4, 448), (128, 12, 2, 1400), (128, 20, 20, 200)),
    *((96, 12, 6, 700), (64, 16, 4, 40), (256, 8, 4, 100), (512, 16, 1, 300)),
)
#: The same of a single query, whose attention is split along the cache from 512 positions on.
_DECODING_SHAPES = (
    *((64, 10, 5, 120), (64, 14, 2, 560), (64, 32, 8, 280), (64, 20, 4, 1800), (128, 24, 8, 320)),
    *((128, 16, 8, 530), (128, 32, 8, 900), (128, 14, 2, 700), (256, 8, 2, 520), (96, 16, 4, 250)),
)
#: Types of the cache beside F16, and the same of them; for others the nearest stands in.
_CACHE_TYPES = ("f32", "bf16", "q8_0", "q5_1", "q4_0")
_CACHE_SHAPES = (
    *((64, 8, 4, 0), (64, 16, 16, 192), (64, 12, 2, 300), (64, 24, 8, 960)),
    *((128, 8, 8, 64), (128, 16, 4, 448), (128, 12, 2, 1400)),
)
#: The logits of a token, which some models scale or cap.
_LONG_ROW = 131_072
_ROW_SIZES = (256, 1024, 2048, 6144)
#: Rows that are written several times.
_REPEATED = ((128, 2), (1024, 6), (2048, 4))
#: Norms of heads have short rows, one for each token and head.
_HEAD_SIZES, _HEAD_ROWS = (64, 128, 256, 1024), 4096
_HEADS = ((64, 4), (64, 24), (128, 8), (128, 32))
_ELEMENTWISE = ("ADD", "MUL", SCALED_ROWS, "CPY", "CONCAT", "SWIGLU", "GEGLU", "SWIGLU_OAI")
#: Operators of one source.
_UNARY = ("SCALE", "SILU", "GELU", "SIGMOID", "TANH", "EXP", "SOFTPLUS", "SQR", "NORM", "L2_NORM")
#: Channels and tokens that each sees, of convolutions.
_CONVOLUTIONS = ((1024, 3), (1536, 4), (4096, 4), (8192, 4))
#: Size of a head, heads, and groups of heads or states of a channel, of operators that carry a state.
_SCANS = (
    *((1, 16, 1024, 1), (1, 16, 3072, 1), (1, 8, 2048, 1), (1, 16, 5120, 1)),
    *((64, 128, 24, 1), (64, 128, 64, 8), (64, 64, 40, 1), (64, 128, 96, 1), (32, 256, 32, 2)),
)
_DELTAS = ((128, 1, 16, 16), (128, 1, 32, 16), (64, 1, 24, 24), (128, 1, 48, 48))
_RWKV = ((64, 12), (64, 40), (128, 16), (128, 32))
#: Experts that a router sorts, and those of a token, whose weights are summed.
_ROUTED = ((32, 4), (64, 6), (128, 8), (256, 16))


#: The fields that the numbers of a row are.
_MATRIX = ("n_inner", "n_outer")
_EXPERTS = (*_MATRIX, "n_experts", "n_used")
_OF_HEADS = ("n_inner", "n_heads", "n_kv_heads", "n_past")
_OF_STATES = (*_MATRIX, "n_heads", "n_kv_heads")


def standard_shapes(types: Sequence[str] = STANDARD_TYPES) -> tuple[OperatorShape, ...]:
    """List the operators of a calibration for weights of these ggml types, in lower case; each once."""
    others = (*_attention(), *_rows(), *_gathers(), *_states(), *_routing())
    return tuple(dict.fromkeys((*_products(types), *others)))


def _grid(
    op: str, type_name: str, fields: Sequence[str], rows: Iterable[Sequence[int]], levels: Iterable[int] = _ROW_LEVELS
) -> Iterator[OperatorShape]:
    for sizes, n in product(rows, levels):
        yield OperatorShape(op=op, type=type_name, n_tokens=n, **dict(zip(fields, sizes, strict=True)))


def _products(types: Sequence[str]) -> Iterator[OperatorShape]:
    for type_name in types:
        shapes = (*_WEIGHT_SHAPES, *(_NARROW_SHAPES if type_name == "f32" else ()))
        yield from _grid("MUL_MAT", type_name, _MATRIX, shapes, _PRODUCT_LEVELS)
    for type_name in (name for name in types if name in EXPERT_TYPES):
        yield from _grid("MUL_MAT_ID", type_name, _EXPERTS, _EXPERT_SHAPES, TOKEN_LEVELS)


def _attention() -> Iterator[OperatorShape]:
    fused = [("f16", _ATTENTION_SHAPES, _ATTENTION_LEVELS), ("f16", _DECODING_SHAPES, (1,))]
    for type_name, shapes, levels in (*fused, *((name, _CACHE_SHAPES, TOKEN_LEVELS) for name in _CACHE_TYPES)):
        yield from _grid("FLASH_ATTN_EXT", type_name, _OF_HEADS, shapes, levels)
    for (size, n_heads, n_kv_heads, n_past), n in product(_ATTENTION_SHAPES[::2], TOKEN_LEVELS):
        n_kv = -(-(n_past + n) // KV_PADDING) * KV_PADDING  # scores, softmax and mix, one after the other
        for k, m in ((size, n_kv), (n_kv, size)):
            yield from _grid("MUL_MAT", "f16", _OF_STATES, [(k, m, n_heads, n_kv_heads)], [n])
        yield from _grid("SOFT_MAX", "f32", ("n_inner", "n_heads"), [(n_kv, n_heads)], [n])


def _rows() -> Iterator[OperatorShape]:
    for n_inner, op in product(_ROW_SIZES, ("RMS_NORM+MUL", *_ELEMENTWISE, *_UNARY)):
        yield from _grid(op, "f32", ("n_inner",), [(n_inner,)])
    for op in _UNARY:
        yield OperatorShape(op=op, type="f32", n_inner=_LONG_ROW)
    yield from _grid("REPEAT", "f32", ("n_inner", "n_heads"), _REPEATED)
    for size, op in product(_HEAD_SIZES, ("RMS_NORM+MUL", "L2_NORM")):
        yield OperatorShape(op=op, type="f32", n_inner=size, n_tokens=_HEAD_ROWS)
    yield from _grid("ROPE", "f32", ("n_inner", "n_heads"), _HEADS)


def _gathers() -> Iterator[OperatorShape]:
    for n_inner, n in product(_ROW_SIZES, _ROW_LEVELS):
        for op, type_name in (("GET_ROWS", "f32"), *(("SET_ROWS", name) for name in ("f16", *_CACHE_TYPES))):
            yield from _grid(op, type_name, _MATRIX, [(n_inner, 1024)], [n])


def _states() -> Iterator[OperatorShape]:
    """Convolutions over a few tokens, and what carries a state from token to token."""
    for n in _ROW_LEVELS:
        yield from _grid("SSM_CONV", "f32", _MATRIX, _CONVOLUTIONS, [n])
        yield from _grid("SSM_SCAN", "f32", _OF_STATES, _SCANS, [n])
        yield from _grid("GATED_DELTA_NET", "f32", _OF_STATES, _DELTAS, [n])
        yield from _grid("RWKV_WKV7", "f32", ("n_inner", "n_heads"), _RWKV, [n])


def _routing() -> Iterator[OperatorShape]:
    for n, (n_experts, n_used) in product(_ROW_LEVELS, _ROUTED):
        yield from _grid("ARGSORT", "f32", ("n_inner", "n_used"), [(n_experts, n_experts)], [n])
        yield from _grid("SUM_ROWS", "f32", ("n_inner", "n_used"), [(n_used, 1)], [n])
        yield from _grid("DIV", "f32", ("n_inner",), [(n_used,)], [n])


def typical_shapes(shapes: Iterable[OperatorShape]) -> tuple[OperatorShape, ...]:
    """Pick two shapes for each kind and type: the one in the middle at the fewest and at the most rows."""
    by_family: dict[tuple[str, str], list[OperatorShape]] = {}
    for shape in shapes:
        by_family.setdefault(family(shape), []).append(shape)
    chosen = []
    for members in by_family.values():
        levels = {each.n_tokens for each in members}
        for n_tokens in sorted({min(levels), max(levels)}):
            alike = [shape for shape in members if shape.n_tokens == n_tokens]
            chosen.append(sorted(alike, key=lambda shape: shape.n_inner * max(1, shape.n_outer))[len(alike) // 2])
    return tuple(chosen)
