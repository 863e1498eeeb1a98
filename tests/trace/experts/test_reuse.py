"""Reuse of experts."""

from __future__ import annotations

import random

import numpy as np
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.engine_trace import EXPERT_DTYPE
from perfsuite.trace.experts.reuse import LayerReuse, expert_reuse

from ...synthetic_statistics import experts_of


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


def test_every_expert_is_reported() -> None:
    uses = reuse([[0, 1], [1, 2]], n_experts=4).uses()
    assert [(each.expert, each.n_activations, each.mean_distance) for each in uses] == [
        (0, 1, None),
        (1, 2, 1.0),
        (2, 1, None),
        (3, 0, None),
    ]
    assert expert_reuse(np.empty(0, EXPERT_DTYPE), 8) == ()


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
