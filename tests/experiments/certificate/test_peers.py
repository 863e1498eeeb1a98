"""The rules of other tools."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from perfsuite.experiments.certificate.peers import (
    PEERS,
    PeerSamples,
    asv_alarms,
    criterion_alarms,
    google_benchmark_alarms,
    mean_alarms,
    tango_alarms,
)

Side = tuple[tuple[int, ...], ...]


def drawn(seed: int, *, effect: float = 0.0, offset: float = 0.0, jitter: float = 0.01) -> PeerSamples:
    """Ten processes of 30 repetitions: each process has an offset of its own, each repetition a jitter."""
    generator = np.random.default_rng(seed)

    def side(scale: float) -> Side:
        logs = generator.normal(0, offset, (10, 1)) + generator.normal(0, jitter, (10, 30))
        return tuple(map(tuple, np.rint(1e6 * scale * np.exp(logs)).astype(int).tolist()))

    return PeerSamples(old=side(1.0), new=side(1.0 + effect))


def one_process(old: tuple[int, ...], new: tuple[int, ...]) -> PeerSamples:
    return PeerSamples(old=(old,), new=(new,))


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize(("effect", "alarms"), [(0.25, True), (-0.2, False)], ids=["slower", "faster"])
def test_only_a_slowdown_alarms(peer: str, effect: float, alarms: bool) -> None:
    assert {PEERS[peer](drawn(seed, effect=effect)) for seed in range(10)} == {alarms}


def paired(*differences: int) -> PeerSamples:
    """Processes whose medians differ by so much."""
    new = tuple((1, 1000 + each, 10**6) for each in differences)
    return PeerSamples(old=((999, 1000, 1001),) * len(differences), new=new)


def doubled(n_repetitions: int) -> PeerSamples:
    old = tuple(range(1000, 1000 + n_repetitions))
    return one_process(old, tuple(2 * each for each in old))


def near(mean: int) -> PeerSamples:
    """Of 1000 in the mean, and of another mean; what further processes took does not matter."""
    return PeerSamples(old=((900, 1100), (1,)), new=((mean - 5, mean + 5), (10**6,)))


@pytest.mark.parametrize(
    ("rule", "samples", "alarms"),
    [
        *((partial(mean_alarms, threshold_ratio=0.05), near(mean), mean > 1050) for mean in (1049, 1050, 1051)),
        (asv_alarms, drawn(0, effect=0.09, jitter=0.0001), False),
        (asv_alarms, drawn(0, effect=0.11, jitter=0.0001), True),
        (asv_alarms, doubled(6), False),  # two-sided, p = 2/924
        (asv_alarms, doubled(7), True),  # p = 2/3432, below 0.002
        (asv_alarms, doubled(2000), True),  # whose orders no float can count
        (google_benchmark_alarms, one_process((1, 2, 3, 4), (5, 6, 7, 8)), True),  # p = 1/35
        (google_benchmark_alarms, one_process((1, 2, 3), (5, 6, 7)), False),  # p = 1/10
        (google_benchmark_alarms, PeerSamples(old=((1, 2, 3, 4), (1,)), new=((1, 2, 3, 4), (9,))), False),
        (tango_alarms, paired(10, 10, 10), True),
        (tango_alarms, paired(4, 4, 4), False),  # a mean within half a percent
        (tango_alarms, paired(0, 40, 20), False),  # z below 2.6
        (tango_alarms, paired(10), False),  # one pair has no z
        (tango_alarms, PeerSamples(old=((1000,), (1000,)), new=((1000,), (1000,), (9000,))), False),
        (criterion_alarms, drawn(0, effect=0.005, jitter=0.001), False),  # however significant
        (criterion_alarms, drawn(0, effect=0.015, jitter=0.001), True),
        (criterion_alarms, drawn(3, effect=0.03, jitter=0.2), False),  # noise within a process hides it
        (criterion_alarms, one_process((1000,) * 10, (1100,) * 10), True),
    ],
)
def test_a_rule_alarms_beyond_its_threshold(
    rule: Callable[[PeerSamples], bool], samples: PeerSamples, alarms: bool
) -> None:
    assert rule(samples) is alarms


def test_repetitions_of_one_process_are_no_replicates() -> None:
    """Where processes differ by 3 % and nothing changed, rules within one alarm in a fifth of runs, pairs in few."""
    runs = [drawn(seed, offset=0.03) for seed in range(200)]
    for rule in (google_benchmark_alarms, criterion_alarms):
        assert sum(map(rule, runs)) >= 40
    assert sum(map(tango_alarms, runs)) <= 10
