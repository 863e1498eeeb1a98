"""What each expert cost."""

from __future__ import annotations

import pytest

from perfsuite.testing.engine_traces import engine_trace
from perfsuite.trace.experts.reuse import expert_reuse
from perfsuite.trace.experts.statistics import ExpertTime, expert_times
from perfsuite.trace.statistics.operator_runs import operator_runs, operator_table

from ...synthetic_statistics import expert_product, experts_of, product, step_events


def times(n_nodes: int = 2) -> dict[int, ExpertTime]:
    """Return the experts of one layer over two steps of 6 µs each, the first of two tokens."""
    events = [*step_events(0, lambda *_: 6_000, n_nodes, n_tokens=2), *step_events(1, lambda *_: 6_000, n_nodes)]
    graph = (product("Qcur", 64, 64), expert_product(0))
    experts = experts_of([(0, 0, [[1, 2], [1, 3]]), (1, 0, [[1, 3]])])
    trace = engine_trace(events, graphs=(graph,), experts=experts, n_experts=4)
    layers = expert_reuse(trace.experts, trace.n_experts)
    return {each.expert: each for each in expert_times(layers, operator_runs(trace), operator_table(trace))}


def test_a_layer_s_time_is_shared_by_rows() -> None:
    """Expert 1 gets two of four rows and one of two, 2 one of four; choices alone show no time."""
    found = times()
    assert [found[expert].time_ns for expert in range(4)] == pytest.approx([0.0, 6_000.0, 1_500.0, 4_500.0])
    assert ([found[expert].n_activations for expert in range(4)], found[1].mean_distance) == ([0, 2, 1, 2], 1.0)
    assert {each.time_ns for each in times(n_nodes=1).values()} == {None}
