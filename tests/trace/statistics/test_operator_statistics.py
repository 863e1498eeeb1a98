"""Time by type of operator and dimensions."""

from __future__ import annotations

from math import hypot

import numpy as np
import pytest

from perfsuite.records.events import Node, Phase
from perfsuite.records.op_cost import OpCost
from perfsuite.testing.engine_traces import engine_trace, node, tensor
from perfsuite.trace.operators import RecordedOperator, traced_operators
from perfsuite.trace.statistics.operator_runs import operator_runs, operator_table
from perfsuite.trace.statistics.operator_statistics import (
    CostOf,
    OperatorType,
    dimensions_of,
    fit_line,
    operator_statistics,
    stored_type,
)

from ...synthetic_statistics import attention, expert_product, law_trace, norm, product, step_events

SCORES = node("MUL_MAT", tensor("kq-0", (256, 4, 9)), tensor("k", (64, 256, 3), type="f16"), tensor("q", (64, 4, 9)))


@pytest.mark.parametrize(
    ("traced", "dimensions", "type_name"),
    [
        (SCORES, "256x4x64x9", "f16"),
        (expert_product(0, n_used=2, n_tokens=3), "32x6x64x1", "q8_0"),
        (attention(512, n_tokens=2), "512x2x64x9", "f16"),
        (norm(576, n_tokens=5), "576x5x1x1", "f32"),
    ],
)
def test_each_kind_of_operator_has_its_dimensions(traced: Node, dimensions: str, type_name: str) -> None:
    (operator,) = traced_operators([traced])
    assert (str(dimensions_of(operator)), stored_type(operator)) == (dimensions, type_name)


def test_points_on_a_line_give_that_line() -> None:
    fit = fit_line([1e6, 2e6, 5e6], [12.0, 22.0, 52.0])
    assert fit is not None
    assert (fit.slope, fit.intercept) == (pytest.approx(1e-5), pytest.approx(2.0))
    assert (fit.r_squared, fit.residual) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-6))
    assert (fit.deviations_ratio, fit.at(0.0)) == (pytest.approx((0.0, 0.0, 0.0), abs=1e-6), pytest.approx(2.0))
    fit = fit_line([1.0, 2.0, 3.0], [5.0, 5.0, 5.0])
    assert fit is not None
    assert fit.r_squared is None


def test_a_relative_line_is_not_ruled_by_the_largest() -> None:
    x, y = [1.0, 2.0, 4.0, 1000.0], [10.0, 20.0, 40.0, 1500.0]
    plain, relative = fit_line(x, y), fit_line(x, y, is_relative=True)
    assert plain is not None
    assert relative is not None
    parts = [[each.at(one) / other - 1.0 for one, other in zip(x, y, strict=True)] for each in (relative, plain)]
    assert hypot(*parts[0]) < hypot(*parts[1])
    assert plain.residual < relative.residual


SIZES = (64, 128, 256, 512)
GRAPH = (*(product(f"ffn_{size}", 64, size) for size in SIZES), norm())


def linear(_step: int, position: int, _thread: int) -> int:
    """Return 2 µs and 1 ns for each of the 64 rows of K and of M."""
    return 2_000 + 64 * SIZES[position] if position < len(SIZES) else 500


def types(cost_of: CostOf | None = None) -> tuple[OperatorType, ...]:
    trace = law_trace(GRAPH, 10, linear)
    return operator_statistics(operator_runs(trace), operator_table(trace), (), cost_of)


def test_time_over_work_is_the_law() -> None:
    products, norms = types()
    assert (products.op, products.type, products.phase, products.n) == ("MUL_MAT", "q8_0", Phase.DECODE, 40)
    assert products.fit is not None
    assert (products.fit.slope, products.fit.intercept) == (pytest.approx(1.0), pytest.approx(2_000.0))
    assert [each.dimensions.m for each in products.dimensions] == list(SIZES)
    assert [each.median_ns for each in products.dimensions] == [2_000 + 64 * size for size in SIZES]
    assert norms.fit is None
    assert sum(each.share_ratio for each in types()) == pytest.approx(1.0)


def test_rates_are_costs_over_the_median() -> None:
    """1000 FLOPs and 4000 bytes in 500 ns are 2 GFLOP/s and 8 GB/s."""

    def cost_of(operator: RecordedOperator) -> OpCost | None:
        return OpCost(flops=1_000, read_bytes=4_000) if operator.op == "RMS_NORM+MUL" else None

    products, norms = types(cost_of)
    assert (norms.dimensions[0].flops_per_s, norms.dimensions[0].bytes_per_s) == (2e9, 8e9)
    assert (products.dimensions[0].flops_per_s, products.dimensions[0].bytes_per_s) == (None, None)


def test_counters_become_memory_access_and_stalls() -> None:
    """A refill is 64 bytes by the better counter, a write 16."""
    names = ("l3d_cache_refill", "mem_access_wr", "stall_backend", "cycles")
    counters = np.array([[10, 5, 20, 100], [10, 5, 30, 100]])
    trace = engine_trace(step_events(0, linear, 1, counters=0), graphs=(GRAPH,), counter_names=names, counters=counters)
    (found,) = operator_statistics(operator_runs(trace), operator_table(trace), names)
    assert found.counted == {"l3d_cache_refill": 20, "mem_access_wr": 10, "stall_backend": 50, "cycles": 200}
    assert (found.memory_access_bytes, found.stall_ratio) == (20 * 64 + 10 * 16, 0.25)
    names, counters = ("cache-misses", "llc-load-misses"), np.array([[3, 2], [4, 2]])
    trace = engine_trace(step_events(0, linear, 1, counters=0), graphs=(GRAPH,), counter_names=names, counters=counters)
    (found,) = operator_statistics(operator_runs(trace), operator_table(trace), names)
    assert found.memory_access_bytes == 7 * 64
