"""Time by type of operator and dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from perfsuite.records.events import Phase
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.trace.operators import RecordedOperator
from perfsuite.trace.statistics.operator_runs import operator_runs
from perfsuite.trace.statistics.operator_statistics import CostOf, OperatorType, operator_statistics
from perfsuite.trace.statistics.operator_table import operator_table

from ...synthetic_statistics import law_trace, norm, product, step_events

SIZES = (64, 128, 256, 512)
GRAPH = (*(product(f"ffn_{size}", 64, size) for size in SIZES), norm())


def linear(_step: int, position: int, _thread: int) -> int:
    """Return 2 µs and 1 ns for each of the 64 rows of K and of M."""
    return 2_000 + 64 * SIZES[position] if position < len(SIZES) else 500


@dataclass(frozen=True)
class Cost:
    """A made-up cost."""

    flops: int = 1_000
    moved_bytes: int = 4_000


def types(cost_of: CostOf | None = None) -> tuple[OperatorType, ...]:
    """Return the types of operators of ten steps."""
    trace = law_trace(GRAPH, 10, linear)
    return operator_statistics(operator_runs(trace), operator_table(trace), (), cost_of)


def test_time_over_work_is_the_law() -> None:
    """The line through four sizes has the law's slope and intercept."""
    products, norms = types()
    assert (products.op, products.type, products.phase, products.n) == ("MUL_MAT", "q8_0", Phase.DECODE, 40)
    assert products.fit is not None
    assert (products.fit.slope, products.fit.intercept) == (pytest.approx(1.0), pytest.approx(2_000.0))
    assert [each.dimensions.m for each in products.dimensions] == list(SIZES)
    assert [each.median_ns for each in products.dimensions] == [2_000 + 64 * size for size in SIZES]
    assert norms.fit is None


def test_shares_add_up_within_a_phase() -> None:
    """The types of a phase share all of its time."""
    assert sum(each.share_ratio for each in types()) == pytest.approx(1.0)


def test_rates_are_costs_over_the_median() -> None:
    """1000 FLOPs and 4000 bytes in 500 ns are 2 GFLOP/s and 8 GB/s; without a cost no rate is told."""

    def cost_of(operator: RecordedOperator) -> Cost | None:
        return Cost() if operator.op == "RMS_NORM+MUL" else None

    products, norms = types(cost_of)
    assert (norms.dimensions[0].flops_per_s, norms.dimensions[0].bytes_per_s) == (2e9, 8e9)
    assert (products.dimensions[0].flops_per_s, products.dimensions[0].bytes_per_s) == (None, None)


def test_phases_are_kept_apart() -> None:
    """The same operators of a prefill are a type of their own, and come first."""
    graphs = ((product("ffn_up", 64, 64, n_tokens=8),), (product("ffn_up", 64, 64),))
    events = [*step_events(0, linear, 1, n_tokens=8), *step_events(1, linear, 1, graph=1)]
    trace = engine_trace(events, graphs=graphs)
    found = operator_statistics(operator_runs(trace), operator_table(trace))
    assert [(each.phase, each.share_ratio) for each in found] == [(Phase.PREFILL, 1.0), (Phase.DECODE, 1.0)]


def test_counters_become_memory_access_and_stalls() -> None:
    """A refill of the last cache is 64 bytes, a write 16; stalled cycles are told over all of them."""
    names = ("l3d_cache_refill", "mem_access_wr", "stall_backend", "cycles")
    counters = np.array([[10, 5, 20, 100], [10, 5, 30, 100]])
    trace = engine_trace(
        step_events(0, linear, 1, counters=0),
        graphs=(GRAPH,),
        counter_names=names,
        counters=counters,
    )
    (found,) = operator_statistics(operator_runs(trace), operator_table(trace), names)
    assert found.counted == {"l3d_cache_refill": 20, "mem_access_wr": 10, "stall_backend": 50, "cycles": 200}
    assert found.memory_access_bytes == 20 * 64 + 10 * 16
    assert found.stall_ratio == 0.25


def test_misses_are_not_counted_twice() -> None:
    """Of two counters of lines that are read the better one counts."""
    names, counters = ("cache-misses", "llc-load-misses"), np.array([[3, 2], [4, 2]])
    trace = engine_trace(step_events(0, linear, 1, counters=0), graphs=(GRAPH,), counter_names=names, counters=counters)
    (found,) = operator_statistics(operator_runs(trace), operator_table(trace), names)
    assert found.memory_access_bytes == 7 * 64


def test_without_counters_nothing_is_said_of_memory() -> None:
    """Neither memory access nor stalls are known."""
    products, _ = types()
    assert (products.memory_access_bytes, products.stall_ratio, products.counted) == (None, None, {})


def test_a_counter_that_was_not_read_is_not_known() -> None:
    """One run without the counter leaves the sum unknown."""
    names = ("cycles",)
    counters = np.array([[10], [-1]])
    events = step_events(0, linear, 1, counters=0)
    trace = engine_trace(events, graphs=(GRAPH,), counter_names=names, counters=counters)
    (found,) = operator_statistics(operator_runs(trace), operator_table(trace), names)
    assert found.counted == {"cycles": None}
