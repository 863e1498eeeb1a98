"""What is placed and sampled, in which order, without a process."""

from __future__ import annotations

import random

import pytest

from perfsuite.errors import OpenClError, ShapeError
from perfsuite.measure.shapes import sampler
from perfsuite.measure.shapes.sampler import FEWEST_LAUNCHES, MOST_LAUNCHES, Sampler, launches_of_a_sample

from .fake_bench import BASE_NS, BROKEN, BULKY, REFUSED, FakeBench, gemv


@pytest.mark.parametrize(
    ("launch_ns", "n_launches"),
    [
        ([1_000], MOST_LAUNCHES),
        ([100_001, 900_000], 5),
        ([1_900_000], FEWEST_LAUNCHES),
        ([2_100_000], 2),
        ([1_000, 20_000_000], 1),
        ([1_000, 3_000_000], 3),
        ([1_000, 1_000, 1_000, 3_000_000], 7),
    ],
)
def test_the_fastest_says_how_many_launches_and_all_how_many_at_most(launch_ns: list[int], n_launches: int) -> None:
    """Small kept are launched for some 100 microseconds, and large ones beside them not too often."""
    assert launches_of_a_sample(launch_ns) == n_launches


@pytest.mark.parametrize(
    ("most", "asked", "log"),
    [
        ({}, (1, 1), ["place 1"]),
        (
            {"most_bytes": sum(gemv(n).shape.moved_bytes for n in (1, 2, 3))},
            (1, 2, 3, 1, 4),
            ["place 1", "place 2", "place 3", "place 4", "close 2", "close 3"],
        ),
        ({"most_bytes": 1}, (1, 2, 2, 1, 1, 2), ["place 1", "place 2"]),
    ],
    ids=["once", "longest ago", "two that take turns"],
)
def test_an_operation_is_placed_once_until_it_makes_room(
    most: dict[str, int], asked: tuple[int, ...], log: list[str]
) -> None:
    """Beyond the bound on bytes the one goes that was asked for longest ago; two that take turns always stay."""
    bench = FakeBench()
    kept = Sampler(bench, seed=0, **most)
    for n in asked:
        assert kept.operation(gemv(n)) is kept.operation(gemv(n))
    assert bench.log == log
    kept.drop_all()
    assert sorted(line for line in bench.log if "close" in line) == [f"close {n}" for n in sorted({*asked})]


def test_a_full_device_is_tried_again_without_the_others() -> None:
    bench = FakeBench()
    kept = Sampler(bench, seed=0)
    kept.operation(gemv(1))
    kept.operation(gemv(BULKY))
    assert bench.log == ["place 1", "close 1", f"place {BULKY}"]
    with pytest.raises(ShapeError, match="has no such kernel"):
        kept.operation(gemv(REFUSED))
    with pytest.raises(OpenClError, match="MEM_OBJECT_ALLOCATION_FAILURE"):
        kept.operation(gemv(BROKEN))


def test_a_warmed_up_operation_is_not_warmed_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launch takes is remembered when its operation has made room; a long one is launched once."""
    bench = FakeBench()
    kept = Sampler(bench, seed=0)
    launch_ns = kept.launch_ns(gemv(5))
    kept.drop_all()
    log = tuple(bench.log)
    assert kept.launch_ns(gemv(5)) == launch_ns > 0
    assert tuple(bench.log) == log
    assert log.count("run 5") == sampler.WARM_UP_LAUNCHES
    monkeypatch.setattr(sampler, "WARM_UP_NS", 1)
    bench = FakeBench()
    Sampler(bench, seed=0).launch_ns(gemv(5))
    assert bench.log == ["place 5", "run 5"]


def timed(bench: FakeBench, n_samples: int) -> list[int]:
    """Return the n of the last samples, one each, of which all have equally many launches."""
    launches = [int(line.split()[1]) for line in bench.log if line.startswith("run")]
    samples = [launches[place - MOST_LAUNCHES : place] for place in range(len(launches), 0, -MOST_LAUNCHES)]
    taken = samples[:n_samples][::-1]
    assert all(len(set(each)) == 1 for each in taken)
    return [each[0] for each in taken]


@pytest.mark.parametrize(
    ("sizes", "n_samples", "order"),
    [((1, 2), 3, [1, 2, 2, 1, 1, 2]), ((1, 1), 2, [1, 1, 1, 1]), ((1,), 4, [1, 1, 1, 1])],
)
def test_pairs_take_turns(sizes: tuple[int, ...], n_samples: int, order: list[int]) -> None:
    """Each case has its samples, those of pairs taken ABBA ABBA; a case may be paired with itself."""
    bench = FakeBench()
    samples = Sampler(bench, seed=0).samples([*map(gemv, sizes)], n_samples=n_samples)
    assert samples == tuple((BASE_NS + n,) * n_samples for n in sizes)
    assert timed(bench, len(order)) == order


def test_a_round_runs_in_a_drawn_order() -> None:
    """The answer is in the order of the cases, the launches in one that the seed draws."""
    bench, sizes = FakeBench(), [1, 2, 3, 4, 5, 6]
    kept, cases = Sampler(bench, seed=0), [*map(gemv, sizes)]
    assert kept.round(cases, order_seed=3) == tuple((BASE_NS + n,) for n in sizes)
    expected = list(sizes)
    random.Random(3).shuffle(expected)
    assert timed(bench, len(sizes)) == expected != sizes
    bench.log.clear()
    kept.round(cases, order_seed=4)
    assert timed(bench, len(sizes)) != expected


@pytest.mark.parametrize("n_launches", [1, 5])
def test_a_round_has_as_many_launches_as_are_asked_for(n_launches: int) -> None:
    """The caller that compares two processes gives their number; each case is warmed up before."""
    bench = FakeBench()
    kept, cases = Sampler(bench, seed=0), [gemv(n) for n in (1, 2, 3)]
    kept.round(cases, n_launches=n_launches)
    bench.log.clear()
    kept.round(cases, n_launches=n_launches)
    assert sum(line.startswith("run") for line in bench.log) == 3 * n_launches


def test_what_follows_a_failure_is_answered() -> None:
    """A device that refuses one of several cases is a failure at that case."""
    kept = Sampler(FakeBench(), seed=0)
    with pytest.raises(OpenClError, match="clCreateBuffer failed"):
        kept.round([gemv(1), gemv(BROKEN)])
    assert kept.case == gemv(BROKEN)
    assert not kept.verify([gemv(1)]).is_correct
