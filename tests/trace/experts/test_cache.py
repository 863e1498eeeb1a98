"""Caches of experts."""

from __future__ import annotations

import random
from functools import cache
from itertools import combinations

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.trace.experts.cache import cache_hits, hits_by_size, lru_hits, optimum_hits, stack_depths
from perfsuite.trace.experts.reuse import expert_reuse

from ...synthetic_statistics import experts_of


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
    for each in sizes:
        assert each == cache_hits(layers, each.n_cached)
    assert sizes[-1].lru_hit_ratio == sizes[-1].optimum_hit_ratio == (160 - 16) / 160
    with pytest.raises(PerfsuiteError, match="n_cached is 0"):
        cache_hits((), 0)
    assert (hits_by_size(()), cache_hits((), 2).lru_hit_ratio) == ((), 0.0)
