"""The loop of the measuring process, run in this one."""

from __future__ import annotations

import random

import pytest

from perfsuite.errors import OpenClError, ShapeError
from perfsuite.measure.shapes import service
from perfsuite.measure.shapes.requests import RequestKind, ShapeRequest
from perfsuite.measure.shapes.service import (
    FEWEST_LAUNCHES,
    MOST_LAUNCHES,
    BoundOperations,
    ShapeService,
    launches_of_a_sample,
)
from perfsuite.workload.shapes.shape_case import ShapeCase

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
    """Small operations are launched for some 100 microseconds, and large ones beside them not too often."""
    assert launches_of_a_sample(launch_ns) == n_launches


@pytest.mark.parametrize(
    ("most", "asked", "log"),
    [
        ({}, (1, 1), ["bind 1"]),
        (
            {"most_bytes": sum(gemv(n).shape.moved_bytes for n in (1, 2, 3))},
            (1, 2, 3, 1, 4),
            ["bind 1", "bind 2", "bind 3", "bind 4", "close 2", "close 3"],
        ),
        ({"most_bytes": 1}, (1, 2, 2, 1, 1, 2), ["bind 1", "bind 2"]),
    ],
    ids=["once", "longest ago", "two that take turns"],
)
def test_an_operation_is_bound_once_until_it_makes_room(
    most: dict[str, int], asked: tuple[int, ...], log: list[str]
) -> None:
    """Beyond the bound on bytes the one goes that was asked for longest ago; two that take turns always stay."""
    bench = FakeBench()
    operations = BoundOperations(bench, seed=0, **most)
    for n in asked:
        assert operations.bound(gemv(n)) is operations.bound(gemv(n))
    assert bench.log == log
    operations.close()
    assert sorted(line for line in bench.log if "close" in line) == [f"close {n}" for n in sorted({*asked})]


def test_a_full_device_is_tried_again_without_the_others() -> None:
    bench = FakeBench()
    operations = BoundOperations(bench, seed=0)
    operations.bound(gemv(1))
    operations.bound(gemv(BULKY))
    assert bench.log == ["bind 1", "close 1", f"bind {BULKY}"]
    with pytest.raises(ShapeError, match="has no such kernel"):
        operations.bound(gemv(REFUSED))
    with pytest.raises(OpenClError, match="MEM_OBJECT_ALLOCATION_FAILURE"):
        operations.bound(gemv(BROKEN))


def test_a_warmed_up_operation_is_not_warmed_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a launch takes is remembered when its operation has made room; a long one is launched once."""
    bench = FakeBench()
    operations = BoundOperations(bench, seed=0)
    launch_ns = operations.launch_ns(gemv(5))
    operations.close()
    log = tuple(bench.log)
    assert operations.launch_ns(gemv(5)) == launch_ns > 0
    assert tuple(bench.log) == log
    assert log.count("run 5") == service.WARM_UP_LAUNCHES
    monkeypatch.setattr(service, "WARM_UP_NS", 1)
    bench = FakeBench()
    BoundOperations(bench, seed=0).launch_ns(gemv(5))
    assert bench.log == ["bind 5", "run 5"]


def request(kind: RequestKind, *cases: ShapeCase, n_samples: int = 1, order_seed: int = 0) -> ShapeRequest:
    case_ids = tuple(case.case_id for case in cases)
    return ShapeRequest(kind=kind, case_ids=case_ids, n_samples=n_samples, order_seed=order_seed)


def timed(bench: FakeBench, n_samples: int) -> list[int]:
    """Return the n of the last samples, one each, of which all have equally many launches."""
    launches = [int(line.split()[1]) for line in bench.log if line.startswith("run")]
    samples = [launches[place - MOST_LAUNCHES : place] for place in range(len(launches), 0, -MOST_LAUNCHES)]
    taken = samples[:n_samples][::-1]
    assert all(len(set(each)) == 1 for each in taken)
    return [each[0] for each in taken]


@pytest.mark.parametrize(
    ("kind", "sizes", "n_samples", "order"),
    [
        (RequestKind.PAIRS, (1, 2), 3, [1, 2, 2, 1, 1, 2]),
        (RequestKind.PAIRS, (1, 1), 2, [1, 1, 1, 1]),
        (RequestKind.SAMPLES, (1,), 4, [1, 1, 1, 1]),
    ],
)
def test_pairs_take_turns(kind: RequestKind, sizes: tuple[int, ...], n_samples: int, order: list[int]) -> None:
    """Each case has its samples, those of pairs taken ABBA ABBA; a case may be paired with itself."""
    bench = FakeBench()
    answer = ShapeService(bench, seed=0).answer(request(kind, *map(gemv, sizes), n_samples=n_samples))
    assert answer.samples_ns == tuple((BASE_NS + n,) * n_samples for n in sizes)
    assert timed(bench, len(order)) == order


def test_a_round_runs_in_a_drawn_order() -> None:
    """The answer is in the order of the cases, the launches in one that the seed draws."""
    bench, sizes = FakeBench(), [1, 2, 3, 4, 5, 6]
    service = ShapeService(bench, seed=0)
    answer = service.answer(request(RequestKind.ROUND, *map(gemv, sizes), order_seed=3))
    assert answer.samples_ns == tuple((BASE_NS + n,) for n in sizes)
    expected = list(sizes)
    random.Random(3).shuffle(expected)
    assert timed(bench, len(sizes)) == expected != sizes
    bench.log.clear()
    service.answer(request(RequestKind.ROUND, *map(gemv, sizes), order_seed=4))
    assert timed(bench, len(sizes)) != expected


@pytest.mark.parametrize("n_launches", [1, 5])
def test_a_round_has_as_many_launches_as_are_asked_for(n_launches: int) -> None:
    """The caller that compares two processes gives their number; each case is warmed up before."""
    bench = FakeBench()
    service = ShapeService(bench, seed=0)
    case_ids = tuple(gemv(n).case_id for n in (1, 2, 3))
    asked = ShapeRequest(kind=RequestKind.ROUND, case_ids=case_ids, n_launches=n_launches)
    service.answer(asked)
    bench.log.clear()
    service.answer(asked)
    assert sum(line.startswith("run") for line in bench.log) == 3 * n_launches


def test_a_failure_names_its_case_and_what_follows_is_answered() -> None:
    """A device that refuses one of several cases is an answer with the case at which it did."""
    service = ShapeService(FakeBench(), seed=0)
    failed = service.answer(request(RequestKind.ROUND, gemv(1), gemv(BROKEN)))
    assert (failed.failure or "").startswith(f"{gemv(BROKEN).case_id}: clCreateBuffer failed")
    assert service.answer(request(RequestKind.VERIFY, gemv(1))).deviation is not None
