"""How long each decode step took by its place in the sequence, over the replicates of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median

from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.observation import TokenLatency

#: More places than this are not told apart in a picture.
MAX_TOKENS = 512


def step_latencies(record: EngineRecord) -> dict[int, int]:
    """Return, by tokens in the context, how long one process's decode step took: the median of its repetitions, ns."""
    durations: dict[int, list[int]] = defaultdict(list)
    for span in record.spans:
        if span.phase is Phase.DECODE:
            durations[span.token].append(span.duration_ns)
    return {n_context: round(median(found)) for n_context, found in durations.items()}


def token_latencies(replicates: Sequence[Mapping[int, int]]) -> tuple[TokenLatency, ...]:
    """Put the steps of several processes side by side; of more than `MAX_TOKENS` places that many are kept.

    Only places that all of them have are told. They are thinned out evenly: of n places in order, those at
    round(i (n - 1) / (MAX_TOKENS - 1)) for i from 0, so that the first and the last are among them.
    """
    shared = set[int]().union(*replicates[:1]).intersection(*replicates)
    return tuple(
        TokenLatency(n_context=n_context, samples_ns=tuple(each[n_context] for each in replicates))
        for n_context in _thinned(sorted(shared))
    )


def _thinned(places: Sequence[int]) -> Sequence[int]:
    if len(places) <= MAX_TOKENS:
        return places
    step = (len(places) - 1) / (MAX_TOKENS - 1)
    return [places[round(index * step)] for index in range(MAX_TOKENS)]
