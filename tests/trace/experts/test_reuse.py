"""Reuse of experts, and what each cost."""

from __future__ import annotations

import random

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.trace.experts.reuse import LayerReuse, expert_reuse
from perfsuite.trace.statistics.operator_runs import operator_runs, operator_table
from perfsuite.trace.statistics.statistics_view import ExpertTime, expert_times

from ...synthetic_statistics import expert_product, experts_of, product, step_events


def reuse(batches: list[list[int]], n_experts: int = 8) -> LayerReuse:
    (layer,) = expert_reuse(experts_of((step, 0, [batch]) for step, batch in enumerate(batches)), n_experts)
    return layer


def test_distances_are_iterations_and_other_experts() -> None:
    layer = reuse([[0, 1], [2, 3], [3, 4], [1, 5]])
    again = {(each.iteration, each.expert): each for each in layer.activations if each.distance is not None}
    assert (set(again), again[2, 3].distance, again[2, 3].stack_distance) == ({(2, 3), (3, 1)}, 1, 0)
    assert (again[3, 1].distance, again[3, 1].stack_distance, layer.mean_distance) == (3, 3, 2.0)
    assert layer.mean_stack_distance == 1.5


def test_density_counts_active_experts() -> None:
    layer = reuse([[0, 1], [2, 3], [3, 4], [1, 5]])
    assert (layer.density_ratio, layer.run_density_ratio, layer.n_used, layer.n_iterations) == (0.25, 0.75, 2, 4)
    (layer,) = expert_reuse(experts_of([(0, 3, [[1, 2], [2, 4], [2, 1]])]), None)
    assert [(each.expert, each.n_tokens) for each in layer.activations] == [(1, 2), (2, 3), (4, 1)]
    assert (layer.layer, layer.n_experts, layer.mean_distance) == (3, 5, None)
    (layer,) = expert_reuse(experts_of([(10, 0, [[1]]), (50, 0, [[2]]), (51, 0, [[1]])]), 4)
    assert layer.distances == (2,)


def test_stack_distances_are_those_of_a_plain_count() -> None:
    """On random choices they equal the sets of other experts active since, this iteration's own left out."""
    chance = random.Random(5)
    batches = [sorted(chance.sample(range(12), 3)) for _ in range(60)]
    for each in reuse(batches, 12).activations:
        if each.distance is not None:
            since = batches[each.iteration - each.distance + 1 : each.iteration]
            others = {expert for batch in since for expert in batch}
            first = batches[each.iteration - each.distance]
            later = {expert for expert in first if expert > each.expert}
            assert each.stack_distance == len((others | later) - set(batches[each.iteration]))


@pytest.mark.parametrize("expert", [8, -1])
def test_an_expert_that_cannot_be_is_refused(expert: int) -> None:
    with pytest.raises(MeasurementError, match="read wrongly"):
        reuse([[0, expert]])


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
