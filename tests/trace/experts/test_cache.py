"""Caches of experts, and reuse distance against time and faults."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from perfsuite.records.engine_trace import EngineTrace
from perfsuite.testing.engine_traces import engine_trace
from perfsuite.trace.experts.cache import hits_by_size, optimum_hits, stack_depths
from perfsuite.trace.experts.faults import fault_relation
from perfsuite.trace.experts.reuse import expert_reuse

from ...synthetic_statistics import expert_product, experts_of, step_events


def accesses(n: int, n_experts: int, seed: int) -> list[int]:
    chance = random.Random(seed)
    return [min(chance.randrange(n_experts), chance.randrange(n_experts)) for _ in range(n)]


def best_hits(wanted: tuple[int, ...], n_cached: int) -> int:
    """Return the most hits of any cache at all, by trying every choice."""

    @cache
    def best(at: int, held: frozenset[int]) -> int:
        if at == len(wanted):
            return 0
        here = wanted[at] in held
        pool = held | {wanted[at]}
        kept = [frozenset(each) for each in combinations(sorted(pool), min(n_cached, len(pool)))]
        return here + max(best(at + 1, each) for each in kept)

    return best(0, frozenset())


def lru_hits(wanted: Sequence[int], n_cached: int) -> int:
    """Count the hits of a cache that gives up the one that was not used for longest, access by access."""
    held: list[int] = []
    n_hits = 0
    for expert in wanted:
        n_hits += expert in held
        held = [each for each in held if each != expert][-(n_cached - 1) :] if n_cached > 1 else []
        held.append(expert)
    return n_hits


def test_stack_distances_give_the_hits_of_every_size() -> None:
    """They are what simulation counts: four experts in turn miss a cache of three, the optimum keeps two."""
    for seed in range(5):
        wanted = accesses(300, 16, seed)
        depths = stack_depths(wanted)
        for n_cached in range(1, 18):
            assert sum(depth is not None and depth < n_cached for depth in depths) == lru_hits(wanted, n_cached)
    wanted = [0, 1, 2, 3] * 10
    assert lru_hits(wanted, 3) == 0
    assert optimum_hits(wanted, 3) > 20
    assert lru_hits(wanted, 4) == 36


@pytest.mark.parametrize("seed", range(6))
def test_no_cache_beats_the_optimum(seed: int) -> None:
    wanted = tuple(accesses(10, 5, seed))
    for n_cached in (1, 2, 3):
        assert optimum_hits(wanted, n_cached) == best_hits(wanted, n_cached)
        assert lru_hits(wanted, n_cached) <= optimum_hits(wanted, n_cached)


def test_layers_have_caches_of_their_own() -> None:
    chosen = [
        (step, layer, [random.Random(100 * layer + step).sample(range(8), 2)]) for step in range(40) for layer in (0, 1)
    ]
    layers = expert_reuse(experts_of(chosen), 8)
    sizes = hits_by_size(layers)
    assert [each.n_cached for each in sizes] == list(range(1, 9))
    accesses = [[expert for batch in each.batches() for expert in batch] for each in layers]
    for each in sizes:
        assert each.n_lru_hits == sum(lru_hits(wanted, each.n_cached) for wanted in accesses)
        assert each.n_optimum_hits == sum(optimum_hits(wanted, each.n_cached) for wanted in accesses)
    assert sizes[-1].lru_hit_ratio == sizes[-1].optimum_hit_ratio == (160 - 16) / 160


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
