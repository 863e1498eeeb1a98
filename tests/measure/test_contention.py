"""Competition for the processors, from a made-up /proc."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.measure.contention import Contention, ContentionMark


def proc(folder: Path, threads: dict[str, str], stat: str = "cpu  10 0 10 70 0 0 0 10 5 5\ncpu0 1 2 3\n") -> Path:
    """Write the files of /proc that a mark reads."""
    for thread, schedstat in threads.items():
        place = folder / "self" / "task" / thread
        place.mkdir(parents=True)
        (place / "schedstat").write_text(schedstat)
    (folder / "stat").write_text(stat)
    return folder


def test_times_are_summed_over_the_threads(tmp_path: Path) -> None:
    """A mark holds the sum of running and of waiting over all threads, and the machine's ticks without the guests'."""
    mark = ContentionMark.take(proc(tmp_path, {"1": "100 7 3\n", "2": "50 1 1\n"}))
    assert (mark.running_ns, mark.waiting_ns) == (150, 8)
    assert (mark.steal_ticks, mark.total_ticks) == (10, 100)


def test_two_marks_make_a_difference(tmp_path: Path) -> None:
    """What lies between two marks is their difference, and steal is a share of the machine's ticks."""
    before = ContentionMark.take(proc(tmp_path / "before", {"1": "100 10 3"}))
    after = ContentionMark.take(proc(tmp_path / "after", {"1": "400 110 9"}, "cpu  30 0 20 130 0 0 0 20 0 0\n"))
    contention = before.until(after)
    assert (contention.running_ns, contention.waiting_ns) == (300, 100)
    assert contention.waiting_ratio == 0.25
    assert contention.steal_ratio == 0.1
    assert contention.wall_ns >= 0


@pytest.mark.parametrize("schedstat", ["", "12", "a b c"])
def test_a_kernel_that_does_not_say_is_not_measured(tmp_path: Path, schedstat: str) -> None:
    """Where a thread's file lacks its figures, waiting is None and never 0."""
    before = ContentionMark.take(proc(tmp_path, {"1": "1 1 1", "2": schedstat}))
    contention = before.until(before)
    assert contention.running_ns is contention.waiting_ns is contention.waiting_ratio is None


@pytest.mark.parametrize("stat", ["", "cpu 1 2 3\n", "cpu a b c d e f g h\n"])
def test_a_machine_that_does_not_say_has_no_steal(tmp_path: Path, stat: str) -> None:
    """Where /proc/stat lacks its figures, steal is None."""
    before = ContentionMark.take(proc(tmp_path, {"1": "1 1 1"}, stat))
    assert before.until(before).steal_ratio is None


def test_no_proc_is_not_measured(tmp_path: Path) -> None:
    """Without /proc nothing but the wall clock is known."""
    mark = ContentionMark.take(tmp_path / "nowhere")
    contention = mark.until(mark)
    assert contention.waiting_ratio is None
    assert contention.steal_ratio is None


def test_a_thread_that_ended_does_not_turn_time_back(tmp_path: Path) -> None:
    """Where a thread took its times with it, the difference is 0 and never negative."""
    before = ContentionMark.take(proc(tmp_path / "before", {"1": "100 10 3", "2": "900 90 1"}))
    after = ContentionMark.take(proc(tmp_path / "after", {"1": "200 20 3"}))
    assert (before.until(after).running_ns, before.until(after).waiting_ns) == (0, 0)
    assert before.until(after).waiting_ratio == 0.0


def test_a_mark_of_this_process_is_taken() -> None:
    """On Linux the clock of a mark advances."""
    before = ContentionMark.take()
    assert before.until(ContentionMark.take()).wall_ns > 0


_COUNTS = st.none() | st.integers(0, 10**15)


@given(st.integers(0, 10**15), _COUNTS, _COUNTS, st.none() | st.floats(0, 1))
def test_contention_comes_back_as_it_was(
    wall_ns: int, running_ns: int | None, waiting_ns: int | None, steal_ratio: float | None
) -> None:
    """Contention equals itself after its way through plain values, and its ratio lies between 0 and 1."""
    contention = Contention(wall_ns=wall_ns, running_ns=running_ns, waiting_ns=waiting_ns, steal_ratio=steal_ratio)
    assert Contention.from_plain(contention.to_plain()) == contention
    assert contention.waiting_ratio is None or 0.0 <= contention.waiting_ratio <= 1.0
