"""Caches that keep some of a layer's experts: how often an expert that is needed is there already.

An iteration needs its active experts one after the other, in the order of their numbers, as the engine computes them;
each that is not in the cache is fetched, and takes the place of

* the one that was not used for longest (LRU),
* the one that will not be used for longest (Belady's optimum, an upper bound that knows the future).

Under LRU a cache of n experts hits exactly where fewer than n different experts were used since, so one walk with the
stack distances of single accesses gives all n at once.

*Source*: Mattson et al., 'Evaluation techniques for storage hierarchies', IBM Systems Journal 9 (1970); Belady, 'A
study of replacement algorithms for a virtual-storage computer', IBM Systems Journal 5 (1966).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

from perfsuite.trace.experts.reuse import LayerReuse


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheHits:
    """What caches of one size, one for each layer, hit."""

    #: Experts that each layer's cache holds.
    n_cached: int
    n_accesses: int
    n_lru_hits: int
    n_optimum_hits: int

    @property
    def lru_hit_ratio(self) -> float:
        return self.n_lru_hits / self.n_accesses if self.n_accesses else 0.0

    @property
    def optimum_hit_ratio(self) -> float:
        return self.n_optimum_hits / self.n_accesses if self.n_accesses else 0.0


def hits_by_size(layers: Sequence[LayerReuse]) -> tuple[CacheHits, ...]:
    """Return the hits of every size from 1 to all experts of a layer: LRU by stack distances, optimum by simulation."""
    most = max((each.n_experts for each in layers), default=0)
    accesses = [tuple(chain.from_iterable(each.batches())) for each in layers]
    by_depth = Counter(depth for each in accesses for depth in stack_depths(each) if depth is not None)
    return tuple(
        CacheHits(
            n_cached=n_cached,
            n_accesses=sum(map(len, accesses)),
            n_lru_hits=n_hits,
            n_optimum_hits=sum(optimum_hits(each, n_cached) for each in accesses),
        )
        for n_cached, n_hits in enumerate(accumulate(map(by_depth.__getitem__, range(most))), start=1)
    )


def optimum_hits(accesses: Sequence[int], n_cached: int) -> int:
    """Count the hits of a cache that gives up the one that will not be used for longest.

    It may also keep what it has and let the newcomer pass, which it does where that one is needed last.
    """
    coming: defaultdict[int, list[int]] = defaultdict(list)
    for at in range(len(accesses) - 1, -1, -1):
        coming[accesses[at]].append(at)
    held: dict[int, int] = {}
    furthest: list[tuple[int, int]] = []
    n_hits = 0
    for expert in accesses:
        coming[expert].pop()
        following = coming[expert][-1] if coming[expert] else len(accesses)
        n_hits += expert in held
        held[expert] = following
        heapq.heappush(furthest, (-following, expert))
        while len(held) > n_cached:
            far, other = heapq.heappop(furthest)
            if held.get(other) == -far:
                del held[other]
    return n_hits


def stack_depths(accesses: Sequence[int]) -> tuple[int | None, ...]:
    """Return for each access how many different experts were used since the last one of its own; None for a first."""
    last: dict[int, int] = {}
    newest: list[int] = []
    depths: list[int | None] = []
    for at, expert in enumerate(accesses):
        before = last.get(expert)
        if before is None:
            depths.append(None)
        else:
            place = bisect_left(newest, before)
            depths.append(len(newest) - place - 1)
            del newest[place]
        last[expert] = at
        insort(newest, at)
    return tuple(depths)
