"""Efficiency: how much of a device's peaks an operator reaches, by its kind, type and shape."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.expectation.ceilings import Ceilings
from perfsuite.expectation.ggml_cost import Shape, TensorShape, cost_of
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.timing.operator_shape import SCALED_ROWS, OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """What an operator reaches of the peaks of arithmetic and bandwidth; each a ratio, LIFE's ec and em."""

    shape: OperatorShape
    time_ns: float
    flops_per_s: float
    bytes_per_s: float
    compute_ratio: float
    memory_ratio: float
    #: Standard deviation of the logarithm of the time, and so of both ratios.
    spread_ratio: float


def efficiency(shape: OperatorShape, times: OperatorTimes, ceilings: Ceilings) -> Efficiency:
    """Compare the forecast time of an operator with the multiply-add peak and with the bandwidth of memory.

    ``ec = FLOPs / (time x peak)``, ``em = bytes / (time x bandwidth)``. Products of 8-bit integers may reach an ec
    above 1, for the peak is that of 32-bit floats; an em above 1 says that a cache helped.
    """
    time, cost = times.time(shape), shape_cost(shape)
    seconds = time.time_ns / NS_PER_S
    bandwidth = ceilings.bandwidths[-1].read_bytes_per_s
    return Efficiency(
        shape=shape,
        time_ns=time.time_ns,
        flops_per_s=cost.flops / seconds,
        bytes_per_s=cost.moved_bytes / seconds,
        compute_ratio=cost.flops / seconds / ceilings.fp32_flops_per_s,
        memory_ratio=cost.moved_bytes / seconds / bandwidth,
        spread_ratio=time.spread_ratio,
    )


def shape_cost(shape: OperatorShape) -> OpCost:
    """Return the FLOPs and bytes of an operator that stands alone, by the convention of the engine's graph."""
    k, m, n, heads = shape.n_inner, shape.n_outer, shape.n_tokens, max(1, shape.n_heads)
    x = _tensor("f32", k, n)
    if shape.op == "MUL_MAT":
        weights = _tensor(shape.type, k, m, max(1, shape.n_kv_heads))
        return cost_of("MUL_MAT", _tensor("f32", m, n, heads), (weights, _tensor("f32", k, n, heads)))
    if shape.op == "MUL_MAT_ID":
        experts, chosen = _tensor(shape.type, k, m, shape.n_experts), _tensor("i32", shape.n_used, n)
        return cost_of("MUL_MAT_ID", _tensor("f32", m, shape.n_used, n), (experts, _tensor("f32", k, 1, n), chosen))
    if shape.op == "FLASH_ATTN_EXT":
        n_kv = shape.n_past + n
        cache, mask = _tensor(shape.type, k, n_kv, shape.n_kv_heads), _tensor("f16", n_kv, n)
        return cost_of("FLASH_ATTN_EXT", _tensor("f32", k, heads, n), (_tensor("f32", k, n, heads), cache, cache, mask))
    if shape.op in ("GET_ROWS", "SET_ROWS"):
        stored, rows = _tensor(shape.type, k, max(1, m)), _tensor("i32", n)
        return (
            cost_of("GET_ROWS", x, (stored, rows)) if shape.op == "GET_ROWS" else cost_of("SET_ROWS", stored, (x, rows))
        )
    row = _tensor("f32", k, heads, n)
    if shape.op == SCALED_ROWS:
        return cost_of("MUL", row, (row, _tensor("f32", 1, heads, n)))
    if shape.op == "CONCAT":
        return cost_of("CONCAT", row, (_tensor("f32", k // 2, heads, n), _tensor("f32", k - k // 2, heads, n)))
    others = {"RMS_NORM+MUL": _tensor("f32", k), "ROPE": _tensor("i32", n)}
    return cost_of(shape.op, row, (row, *([] if shape.op == "CPY" else [others.get(shape.op, row)])))


def _tensor(type_name: str, *ne: int) -> TensorShape:
    padded: Shape = (*ne, 1, 1, 1)[:4]  # type: ignore[assignment]
    return TensorShape(type=type_name, ne=padded)
