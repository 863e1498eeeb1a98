"""Whether a run was throttled, on noise as machines have it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from perfsuite.measure.throttling import is_telling, memory_complaint, pairs_note, throttling_complaint

#: What the sentinel scatters by on a shared machine, and how many replicates were disturbed: more than was ever seen.
_SCATTER_RATIO = 0.02
_DISTURBED_PART = 0.03

#: Measured on a shared virtual machine, ns relative to the middle one; the memory sentinel beside it reached 26.
_DISTURBED_RUN = (100, 99, 101, 2265, 100)

#: A run on the same machine in which a neighbour came: the memory sentinel, and what two cases took, ns. Stored by a
#: run of smollm2-135m-q8_0 with its scenario siso, 2026-11-22.
_MEMORY_RUN = (378177, 361151, 371571, 376579, 358758, 366992, 370592, 929497, 888285, 925065)
_DECODE_RUN = (5289289, 5339829, 5270436, 5141858, 5330119, 5324642, 5376819, 4982301, 4837330, 4904806)
_COPY_RUN = (5048, 4467, 3836, 4596, 3966, 4547, 4687, 10406, 10055, 10505)


def noisy(chance: random.Random, n_replicates: int, level: float = 1.0) -> list[int]:
    """Return the times of a sentinel."""
    clear = (level * chance.gauss(1.0, _SCATTER_RATIO) for _ in range(n_replicates))
    return [
        round(1e6 * each * (chance.uniform(1.2, 20.0) if chance.random() < _DISTURBED_PART else 1)) for each in clear
    ]


def scattered(chance: random.Random, n_replicates: int, scatter_ratio: float, level: float = 1.0) -> list[int]:
    """Return the times of something that scatters, and is disturbed by nothing else."""
    return [round(1e6 * level * max(0.05, chance.gauss(1.0, scatter_ratio))) for _ in range(n_replicates)]


def slow_half(n_replicates: int) -> list[int]:
    """Return the times of something that takes half as long again from the middle on."""
    return [100] * (n_replicates - n_replicates // 2) + [150] * (n_replicates // 2)


@pytest.mark.parametrize("n_replicates", [4, 5, 10, 30])
def test_a_quiet_run_passes(n_replicates: int) -> None:
    """Of two thousand runs with that noise fewer than one in a hundred are called throttled."""
    chance = random.Random(n_replicates)
    alarms = sum(throttling_complaint({"compute": noisy(chance, n_replicates)}) is not None for _ in range(2000))
    assert alarms < 20


@pytest.mark.parametrize("n_replicates", [4, 5, 10, 30])
def test_a_run_that_slows_down_is_found(n_replicates: int) -> None:
    """A clock that drops by a fifth for the second half of the run is seen in more than nine runs of ten."""
    chance = random.Random(n_replicates)
    half = n_replicates // 2
    found = [
        throttling_complaint({"compute": noisy(chance, n_replicates - half) + noisy(chance, half, 1.25)})
        for _ in range(500)
    ]
    assert sum(each is not None for each in found) > 450


def test_the_reason_is_one_line() -> None:
    """It says what was slower, by how much, where, against what limit, and what to do."""
    complaint = throttling_complaint({"compute": [100, 101, 100, 99, 100, 124, 125, 123, 122, 121]})
    assert complaint == (
        "throttled: the fixed work took 23 % longer in replicates 6 to 8 of 10 than in the first 3 (limit 10 %); "
        "cool the device or lower its clock, and run again"
    )


#: By what it is: the sentinels of a run, the ceilings at both its ends, and whether it is called throttled.
RUNS: dict[str, tuple[dict[str, Sequence[int]], tuple[int, int] | None, bool]] = {
    "slow in the middle only, which are two machines": ({"compute": [100] * 4 + [130] * 4 + [100] * 4}, None, True),
    "a single one that was disturbed, by however much": ({"compute": _DISTURBED_RUN}, None, False),
    "a slow beginning, which is a warm-up": ({"compute": [150] * 3 + [100] * 6}, None, False),
    "at the limit": ({"compute": [100] * 3 + [110] * 3}, None, False),
    "beyond the limit": ({"compute": [100] * 3 + [111] * 3}, None, True),
    "a neighbour who reads": ({"memory": [100] * 7 + [250] * 3, "compute": [100] * 10}, None, False),
    "no sentinel": ({}, None, False),
    "no replicate": ({"compute": ()}, None, False),
    "one replicate": ({"compute": (100,)}, None, False),
    "two replicates": ({"compute": (100, 200)}, None, False),
    "three replicates": ({"compute": (100, 120, 121)}, None, False),
    "middle repetitions, not the best, beside ceilings": ({"compute": [150, 151, 149]}, (100, 101), False),
    "many replicates, slow only after them": ({"compute": [100] * 4}, (100, 150), False),
}


@pytest.mark.parametrize("run", RUNS)
def test_what_is_throttling_and_what_is_none(run: str) -> None:
    """A clock that drops for a while is, what hits one replicate or memory alone is not, nor what cannot be known."""
    sentinels_ns, ends_ns, is_throttled = RUNS[run]
    assert (throttling_complaint(sentinels_ns, ends_ns) is not None) is is_throttled


@pytest.mark.parametrize("n_replicates", [0, 1, 2, 3])
def test_few_replicates_are_held_between_the_ceilings(n_replicates: int) -> None:
    """What is not visible from one, two or three sentinels is clear from the ceilings before and after them."""
    times = {"compute": [100] * n_replicates}
    assert throttling_complaint(times) is None
    assert throttling_complaint(times, (97, 106)) is None
    assert throttling_complaint(times, (100, 125)) == (
        "throttled: the fixed work took 25 % longer after the last replicate than before the first (limit 10 %); "
        "cool the device or lower its clock, and run again"
    )


def test_what_cannot_be_told_is_known() -> None:
    """From four replicates on the sentinels tell; fewer need ceilings at both ends."""
    told = [is_telling({"compute": [100] * n_replicates}) for n_replicates in range(6)]
    assert told == [False, False, False, False, True, True]
    assert is_telling({"compute": [100]}, has_ends=True)
    assert not is_telling({})


def test_a_neighbour_counts_for_the_cases_that_he_slows_down() -> None:
    """Memory took 2.4 times as long for three replicates: a copy doubled, a decode step did not."""
    sentinels = {"memory": _MEMORY_RUN}
    assert memory_complaint(sentinels, _DECODE_RUN) is None
    assert memory_complaint(sentinels, _COPY_RUN) == (
        "memory slowed down: in replicates 8 to 10 of 10 the fixed reading took 136 % longer than in the first 5, "
        "and this case 119 % (limit 10 %); cool the device or free the machine, and run again"
    )


def test_a_case_alone_is_no_slower_memory() -> None:
    """A case that slows down beside a level sentinel is for the verdict to judge."""
    assert memory_complaint({"memory": [100] * 10}, _COPY_RUN) is None


def test_both_must_be_slow_at_once() -> None:
    """A sentinel that was slow at the end says nothing of a case that was slow in the middle."""
    times = [100] * 6 + [200] * 4
    assert memory_complaint({"memory": times}, [100] * 3 + [150] * 3 + [100] * 4) is None
    assert memory_complaint({"memory": times}, times) is not None


@pytest.mark.parametrize("samples", [(), (100,), (100, 200), (100,) * 9])
def test_a_case_without_a_time_in_each_replicate_is_not_told(samples: tuple[int, ...]) -> None:
    """Nor is one of too few replicates."""
    assert memory_complaint({"memory": [100] * len(samples) + [200]}, samples) is None
    assert memory_complaint({"memory": [100, 200][: len(samples)]}, samples) is None
    assert memory_complaint({}, samples) is None


@pytest.mark.parametrize("n_replicates", [4, 5, 10, 30])
def test_a_busy_memory_alarms_hardly_ever(n_replicates: int) -> None:
    """Of two thousand cases as noisy as pairs have shown, beside memory that halves, one in a hundred is refused."""
    chance = random.Random(n_replicates)
    half = n_replicates // 2
    alarms = sum(
        memory_complaint(
            {"memory": noisy(chance, n_replicates - half) + noisy(chance, half, 2.0)}, noisy(chance, n_replicates)
        )
        is not None
        for _ in range(2000)
    )
    assert alarms < 20


@pytest.mark.parametrize("n_replicates", range(2, 21))
def test_chance_refuses_hardly_any_case(n_replicates: int) -> None:
    """Of cases that scatter by 10 %, beside memory that scatters by 30 %, fewer than one in a hundred is refused."""
    chance = random.Random(n_replicates)
    alarms = sum(
        memory_complaint({"memory": scattered(chance, n_replicates, 0.3)}, scattered(chance, n_replicates, 0.1))
        is not None
        for _ in range(4000)
    )
    assert alarms < 40


@pytest.mark.parametrize("n_replicates", range(6, 21))
def test_memory_that_throttles_from_the_middle_on_is_found(n_replicates: int) -> None:
    """Where both are 30 % slower: all of them at the noise of a quiet machine, and six of ten at several times that."""
    chance = random.Random(n_replicates)

    def n_found(memory_ratio: float, case_ratio: float) -> int:
        def throttled(ratio: float) -> list[int]:
            half = n_replicates // 2
            return scattered(chance, n_replicates - half, ratio) + scattered(chance, half, ratio, 1.3)

        return sum(
            memory_complaint({"memory": throttled(memory_ratio)}, throttled(case_ratio)) is not None for _ in range(500)
        )

    assert n_found(0.02, 0.02) >= 495
    assert n_found(0.10, 0.05) > 300


def test_too_few_replicates_say_nothing_of_memory() -> None:
    """Five could agree by chance; from six on the second half of them is seen."""
    assert [n for n in range(2, 8) if memory_complaint({"memory": slow_half(n)}, slow_half(n))] == [6, 7]


def test_memory_that_slows_early_is_found() -> None:
    """Where only the first two replicates had the memory's full speed, the third is known from them."""
    times = [100, 101] + [150] * 8
    complaint = memory_complaint({"memory": times}, times)
    assert complaint is not None
    assert "in replicates 4 to 6 of 10 the fixed reading took 49 % longer than in the first 3" in complaint


@pytest.mark.parametrize("n_replicates", [6, 10, 30])
def test_memory_that_is_clocked_down_is_found(n_replicates: int) -> None:
    """Where the second half of a run has half the bandwidth, and the case a fifth less speed, nine of ten are found."""
    chance = random.Random(n_replicates)
    half = n_replicates // 2
    found = sum(
        memory_complaint(
            {"memory": noisy(chance, n_replicates - half) + noisy(chance, half, 2.0)},
            noisy(chance, n_replicates - half) + noisy(chance, half, 1.25),
        )
        is not None
        for _ in range(500)
    )
    assert found > 450


def test_pairs_that_slow_down_are_told() -> None:
    """The old side's times say which pairs, by how much, and what that means; level ones say nothing."""
    assert pairs_note([100, 101] * 10) is None
    assert pairs_note([100] * 8) is None
    assert pairs_note([100] * 10 + [125] * 10) == (
        "the old side took up to 25 % longer in pairs 11 to 20 of 20 than in the first 6 (limit 10 %): the device was "
        "throttled or shared; ratios hold, for both sides take turns, and times are those of two speeds"
    )
