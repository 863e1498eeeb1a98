"""Reuse distance against time and faults."""

from __future__ import annotations

import random

import numpy as np
import pytest

from perfsuite.records.engine_trace import EngineTrace
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.trace.experts.faults import fault_relation, rank_correlation

from ...synthetic_statistics import expert_product, experts_of, step_events

N_STEPS = 60


def paged_trace(*, n_tokens: int = 1, with_counters: bool = True) -> EngineTrace:
    """Return a layer whose experts take 1 µs and a fault more for each step that they were not used."""
    chance, last = random.Random(3), dict.fromkeys(range(8), -10)
    events, chosen, counters = [], [], []
    for step in range(N_STEPS):
        batch = chance.sample(range(8), 2)
        away = [step - last[expert] for expert in batch]
        last |= dict.fromkeys(batch, step)
        n_faults = sum(away)
        rows = len(counters)
        counters += [[n_faults], [0]]
        law = lambda *_, n=n_faults: 1_000 * (1 + n)  # noqa: E731
        events += step_events(step, law, 1, n_tokens=n_tokens, counters=rows if with_counters else None)
        chosen.append((step, 0, [batch]))
    return engine_trace(
        events,
        graphs=((expert_product(0),),),
        experts=experts_of(chosen),
        n_experts=8,
        counter_names=("page-faults-major",) if with_counters else (),
        counters=np.array(counters, dtype=np.int64)[:, : int(with_counters)],
    )


def test_experts_that_were_away_longer_take_longer() -> None:
    found = fault_relation(paged_trace())
    assert len(found.evaluations) == N_STEPS
    for each in (found.distance_to_time, found.distance_to_faults, found.faults_to_time):
        assert each is not None
        assert each.rho > 0.9
        assert each.p < 1e-6
    times = [each.mean_time_ns for each in found.bins if each.least_distance is not None]
    assert times == sorted(times)
    assert found.bins[-1].least_distance is None
    assert sum(each.n for each in found.bins) == N_STEPS
    assert found.n_major_faults == sum(each.n_major_faults or 0 for each in found.evaluations) > 0


def test_without_a_counter_time_is_related_alone() -> None:
    """Faults are then not known; prompts read nearly all experts and do not count."""
    found = fault_relation(paged_trace(with_counters=False))
    assert found.distance_to_time is not None
    assert (found.n_major_faults, found.distance_to_faults, found.faults_to_time) == (None, None, None)
    assert fault_relation(paged_trace(n_tokens=4)).evaluations == ()


def test_a_correlation_needs_pairs_that_differ() -> None:
    assert rank_correlation([1.0, 2.0], [1.0, 2.0]) is None
    assert rank_correlation([1.0] * 30, list(range(30))) is None
    found = rank_correlation(list(range(30)), [-each for each in range(30)])
    assert found is not None
    assert found.rho == pytest.approx(-1.0)
