"""The rules of other tools."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.experiments.certificate.peers import (
    PEERS,
    Peer,
    PeerSamples,
    asv_alarms,
    criterion_alarms,
    google_benchmark_alarms,
    mean_alarms,
    tango_alarms,
)

each_peer = pytest.mark.parametrize("peer", PEERS, ids=[peer.name for peer in PEERS])


def drawn(
    seed: int, *, effect: float = 0.0, offset: float = 0.0, jitter: float = 0.01, n_processes: int = 10
) -> PeerSamples:
    """Processes of 30 repetitions: each process has an offset of its own, each repetition a jitter."""
    generator = np.random.default_rng(seed)

    def side(scale: float) -> tuple[tuple[int, ...], ...]:
        logs = generator.normal(0, offset, (n_processes, 1)) + generator.normal(0, jitter, (n_processes, 30))
        return tuple(map(tuple, np.rint(1e6 * scale * np.exp(logs)).astype(int).tolist()))

    return PeerSamples(old=side(1.0), new=side(1.0 + effect))


def one_process(old: tuple[int, ...], new: tuple[int, ...]) -> PeerSamples:
    return PeerSamples(old=(old,), new=(new,))


@each_peer
@pytest.mark.parametrize(("effect", "alarms"), [(0.25, True), (-0.2, False)], ids=["slower", "faster"])
def test_only_a_slowdown_alarms(peer: Peer, effect: float, alarms: bool) -> None:
    assert {peer.alarms(drawn(seed, effect=effect)) for seed in range(10)} == {alarms}


@each_peer
@pytest.mark.parametrize("seed", range(3))
def test_samples_do_not_alarm_against_themselves(peer: Peer, seed: int) -> None:
    """The same samples on both sides are no slowdown by any rule."""
    samples = drawn(seed, offset=0.05).old
    assert not peer.alarms(PeerSamples(old=samples, new=samples))


@each_peer
@pytest.mark.parametrize(("n_processes", "n_repetitions"), [(1, 1), (1, 5), (5, 1), (12, 30)])
def test_constant_samples_do_not_alarm(peer: Peer, n_processes: int, n_repetitions: int) -> None:
    """Samples that all tie are no slowdown, however few."""
    side = ((1000,) * n_repetitions,) * n_processes
    assert not peer.alarms(PeerSamples(old=side, new=side))


@each_peer
def test_one_repetition_each_is_judged(peer: Peer) -> None:
    """One repetition a side is a slowdown where a rule compares two values, and none where it tests."""
    compares_values = peer.name.startswith(("pytest-benchmark", "asv"))
    assert peer.alarms(one_process((1000,), (1500,))) == compares_values


@each_peer
def test_an_alarm_is_the_same_every_time(peer: Peer) -> None:
    samples = [drawn(seed, effect=0.02, offset=0.02) for seed in range(10)]
    assert [peer.alarms(each) for each in samples] == [peer.alarms(each) for each in samples]


@each_peer
def test_a_rule_names_its_source(peer: Peer) -> None:
    assert [other.name for other in PEERS].count(peer.name) == 1
    assert peer.source


@pytest.mark.parametrize(("new", "alarms"), [(1049, False), (1050, False), (1051, True)])
def test_pytest_benchmark_compares_two_means(new: int, alarms: bool) -> None:
    samples = PeerSamples(old=((900, 1100), (1,)), new=((new - 5, new + 5), (10**6,)))
    assert mean_alarms(samples, threshold_ratio=0.05) is alarms


@pytest.mark.parametrize(("effect", "alarms"), [(0.09, False), (0.11, True)])
def test_asv_needs_the_factor(effect: float, alarms: bool) -> None:
    assert asv_alarms(drawn(0, effect=effect, jitter=0.0001)) is alarms


@pytest.mark.parametrize(("n_repetitions", "alarms"), [(6, False), (7, True)])
def test_asv_needs_enough_samples(n_repetitions: int, alarms: bool) -> None:
    """Two-sided, six separate samples a side reach p = 2/924 and seven 2/3432: only that of seven is below 0.002."""
    old = tuple(range(1000, 1000 + n_repetitions))
    assert asv_alarms(one_process(old, tuple(2 * each for each in old))) is alarms


def test_asv_pools_any_number_of_samples() -> None:
    """A run of some minutes has thousands, whose orders no float can count."""
    old = tuple(range(1000, 3000))
    assert asv_alarms(one_process(old, tuple(2 * each for each in old)))
    sides = [tuple((each,) for each in range(first, first + 7)) for first in (1000, 2000)]
    assert asv_alarms(PeerSamples(old=sides[0], new=sides[1]))


def test_google_benchmark_tests_one_process() -> None:
    """Four separate repetitions a side have p = 1/35, three have 1/10, and further processes do not matter."""
    assert google_benchmark_alarms(one_process((1, 2, 3, 4), (5, 6, 7, 8)))
    assert not google_benchmark_alarms(one_process((1, 2, 3), (5, 6, 7)))
    assert not google_benchmark_alarms(PeerSamples(old=((1, 2, 3, 4), (1,)), new=((1, 2, 3, 4), (9,))))


@pytest.mark.parametrize(
    ("differences", "alarms"),
    [
        ((10, 10, 10), True),
        ((4, 4, 4), False),
        ((10, 30, 20), True),
        ((0, 40, 20), False),
        ((-10, -10, -10), False),
        ((10,), False),
    ],
)
def test_tango_tests_paired_differences(differences: tuple[int, ...], alarms: bool) -> None:
    """A mean beyond half a percent with z of 2.6 or more alarms; one pair has no z."""
    old = tuple((999, 1000, 1001) for _ in differences)
    new = tuple((1, 1000 + each, 10**6) for each in differences)
    assert tango_alarms(PeerSamples(old=old, new=new)) is alarms


def test_tango_leaves_out_what_has_no_partner() -> None:
    assert not tango_alarms(PeerSamples(old=((1000,), (1000,)), new=((1000,), (1000,), (9000,))))


@pytest.mark.parametrize(("effect", "alarms"), [(0.005, False), (0.015, True)])
def test_criterion_has_a_noise_threshold(effect: float, alarms: bool) -> None:
    """However significant, a change of less than 1 % is noise."""
    assert criterion_alarms(drawn(0, effect=effect, jitter=0.001)) is alarms


def test_criterion_tests_the_means_of_one_process() -> None:
    """Noise that hides the change within a process hides it from criterion, however many processes there are."""
    assert not criterion_alarms(drawn(3, effect=0.03, jitter=0.2))
    assert criterion_alarms(one_process((1000,) * 10, (1100,) * 10))


def test_repetitions_of_one_process_are_no_replicates() -> None:
    """Where processes differ by 3 % and nothing changed, rules within one alarm in a fifth of runs, pairs in few."""
    runs = [drawn(seed, offset=0.03) for seed in range(200)]
    for rule in (google_benchmark_alarms, criterion_alarms):
        assert sum(map(rule, runs)) >= 40
    assert sum(map(tango_alarms, runs)) <= 10


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ((), ((1,),), "old: a side without processes"),
        (((1,),), ((1,), ()), "new: .*a process without repetitions"),
        (((1, 0),), ((1,),), "old: a latency is not positive: 0 ns"),
        (((1,),), ((1,), (2, -3)), "new: a latency is not positive: -3 ns"),
    ],
)
def test_samples_that_are_none_are_refused(
    old: tuple[tuple[int, ...], ...], new: tuple[tuple[int, ...], ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        PeerSamples(old=old, new=new)


@each_peer
def test_p_values_do_not_depend_on_the_unit(peer: Peer) -> None:
    samples = [drawn(seed, effect=0.04, offset=0.02) for seed in range(5)]

    def scaled(side: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(1024 * value for value in process) for process in side)

    other = [PeerSamples(old=scaled(each.old), new=scaled(each.new)) for each in samples]
    assert [peer.alarms(each) for each in other] == [peer.alarms(each) for each in samples]
