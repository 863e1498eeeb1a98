"""What the time of an operator grows with, by its kind: the terms of its fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from perfsuite.expectation.timing.operator_shape import OperatorShape

#: From this many positions the engine splits a single query's attention over the cache among its threads.
#: *Source*: ``ggml_compute_forward_flash_attn_ext_f16`` in ``ggml/src/ggml-cpu/ops.cpp`` of llama.cpp.
SPLIT_POSITIONS = 512
#: The engine pads the visible cache to a multiple of this.
_KV_PADDING = 256

#: Which measured operator stands in for one that was not measured; for others, `ELSE` does.
STAND_INS: Mapping[str, str] = MappingProxyType(
    {
        "RMS_NORM": "RMS_NORM+MUL",
        "NORM": "RMS_NORM+MUL",
        "L2_NORM": "RMS_NORM+MUL",
        "GEGLU": "SWIGLU",
        "REGLU": "SWIGLU",
        "GELU": "SWIGLU",
        "SILU": "SWIGLU",
        "SIGMOID": "SWIGLU",
        "TANH": "SWIGLU",
        "CONT": "CPY",
        "REPEAT": "CPY",
    }
)
ELSE = "MUL"


def family(shape: OperatorShape) -> tuple[str, str]:
    """Return what shares one fit: the operator, attention's products apart, and the type of its weights."""
    op = f"{shape.op}/heads" if shape.op == "MUL_MAT" and shape.n_heads else shape.op
    return op, shape.type


def features(shape: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    """Return the terms of an operator's time at `n_tokens` rows of activations; the first is the dispatch, 1.

    * Product with weights (k, m): k m (weights streamed and multiplied), k (activations quantised), m (output).
    * Product with experts: k m for each distinct expert that is read, and for each expert of a token.
    * Attention: heads, heads x positions, heads x positions x size of a head, and the cache that is read: heads of the
      cache x positions x size of a head.
    * Attention's plain products: heads x k x m, heads x m. Softmax: heads x elements.
    * RoPE: the angles of a row, and its elements over all heads.
    * The rest: the elements of a row, and their power of 1.5, by which rows of many bytes leave the caches.
    """
    rule = _RULES.get(shape.op, _row)
    return (1.0, *rule(shape, n_tokens, n_threads))


_Rule = Callable[[OperatorShape, int, int], tuple[float, ...]]


def _product(shape: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    k, m = float(shape.n_inner), float(shape.n_outer)
    if shape.n_heads:
        return (shape.n_heads * k * m, shape.n_heads * m)
    return (k * m, k, m)


def distinct_experts(n_experts: int, n_used: int, n_tokens: int) -> float:
    """Return how many experts a batch touches if each token draws its own at random: E (1 - (1 - u/E)^n)."""
    return n_experts * (1.0 - (1.0 - n_used / n_experts) ** n_tokens)


def _experts(shape: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    area = float(shape.n_inner * shape.n_outer)
    return (area * distinct_experts(shape.n_experts, shape.n_used, n_tokens), area * shape.n_used)


def _attention(shape: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    positions = _positions(shape, n_tokens, n_threads)
    heads = float(shape.n_heads)
    width = positions * shape.n_inner
    return (heads, heads * positions, heads * width, shape.n_kv_heads * width)


def _positions(shape: OperatorShape, n_tokens: int, n_threads: int) -> float:
    """Return the positions that a query sees on average, those that idle threads could have seen included."""
    if n_tokens > 1:
        return shape.n_past + (n_tokens + 1) / 2
    n_visible = shape.n_past + 1
    n_kv = -(-n_visible // _KV_PADDING) * _KV_PADDING
    if n_kv < SPLIT_POSITIONS or shape.type not in ("f16", "f32"):
        return float(n_visible)
    return float(n_threads * min(n_visible, -(-n_kv // n_threads)))


def _per_head(shape: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    return (float(shape.n_heads * shape.n_inner),)


def _rope(shape: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    return (float(shape.n_inner), float(shape.n_heads * shape.n_inner))


def _row(shape: OperatorShape, n_tokens: int, n_threads: int) -> tuple[float, ...]:
    return (float(shape.n_inner), float(shape.n_inner) ** 1.5)


_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        "MUL_MAT": _product,
        "MUL_MAT_ID": _experts,
        "FLASH_ATTN_EXT": _attention,
        "SOFT_MAX": _per_head,
        "ROPE": _rope,
    }
)
