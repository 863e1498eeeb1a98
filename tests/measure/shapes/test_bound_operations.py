"""Which operations are kept for the next request, and which make room."""

from __future__ import annotations

import pytest

from perfsuite.errors import OpenClError, ShapeError
from perfsuite.measure.shapes import bound_operations
from perfsuite.measure.shapes.bound_operations import BoundOperations

from .fake_bench import BROKEN, BULKY, REFUSED, FakeBench, gemv


def test_an_operation_is_bound_once() -> None:
    """The second request of a case gets the operation of the first one."""
    bench = FakeBench()
    operations = BoundOperations(bench, seed=0)
    assert operations.bound(gemv(1)) is operations.bound(gemv(1))
    assert bench.log == ["bind 1"]


def test_the_oldest_makes_room() -> None:
    """Beyond the bound on bytes the operation goes that was asked for longest ago, and its buffers with it."""
    bench = FakeBench()
    n_bytes = sum(gemv(n).shape.moved_bytes for n in (1, 2, 3))
    operations = BoundOperations(bench, seed=0, most_bytes=n_bytes)
    for n in (1, 2, 3, 1, 4):
        operations.bound(gemv(n))
    assert bench.log == ["bind 1", "bind 2", "bind 3", "bind 4", "close 2", "close 3"]


def test_two_that_take_turns_are_kept_whatever_they_hold() -> None:
    """A pair larger than the bound is not bound anew at each turn."""
    bench = FakeBench()
    operations = BoundOperations(bench, seed=0, most_bytes=1)
    for n in (1, 2, 2, 1, 1, 2):
        operations.bound(gemv(n))
    assert bench.log == ["bind 1", "bind 2"]
    operations.close()
    assert bench.log[2:] == ["close 2", "close 1"] or bench.log[2:] == ["close 1", "close 2"]


def test_no_more_than_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small operations are bounded by their number."""
    monkeypatch.setattr(bound_operations, "MOST_OPERATIONS", 3)
    bench = FakeBench()
    operations = BoundOperations(bench, seed=0)
    for n in range(1, 6):
        operations.bound(gemv(n))
    assert [line for line in bench.log if line.startswith("close")] == ["close 1", "close 2"]


def test_a_full_device_is_tried_again_without_the_others() -> None:
    """What has no room beside kept operations has it alone."""
    bench = FakeBench()
    operations = BoundOperations(bench, seed=0)
    operations.bound(gemv(1))
    operations.bound(gemv(BULKY))
    assert bench.log == ["bind 1", "close 1", f"bind {BULKY}"]


def test_what_the_bench_refuses_is_an_error() -> None:
    """A case that cannot be computed, and one that has no memory, say so."""
    operations = BoundOperations(FakeBench(), seed=0)
    with pytest.raises(ShapeError, match="has no such kernel"):
        operations.bound(gemv(REFUSED))
    with pytest.raises(OpenClError, match="MEM_OBJECT_ALLOCATION_FAILURE"):
        operations.bound(gemv(BROKEN))


def test_a_warmed_up_operation_is_not_warmed_up_again() -> None:
    """What a launch takes is remembered when its operation has made room."""
    bench = FakeBench()
    operations = BoundOperations(bench, seed=0)
    launch_ns = operations.launch_ns(gemv(5))
    operations.close()
    log = tuple(bench.log)
    assert operations.launch_ns(gemv(5)) == launch_ns > 0
    assert tuple(bench.log) == log
    assert log.count("run 5") == bound_operations.WARM_UP_LAUNCHES


def test_a_long_operation_is_warmed_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """More launches than one are made while they are short."""
    monkeypatch.setattr(bound_operations, "WARM_UP_NS", 1)
    bench = FakeBench()
    BoundOperations(bench, seed=0).launch_ns(gemv(5))
    assert bench.log == ["bind 5", "run 5"]
