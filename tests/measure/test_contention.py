"""Competition for the processors, from a made-up /proc."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.measure.contention import MOST_LOST_RATIO, Contention, ContentionMark

#: user nice system idle iowait irq softirq steal guest guest_nice
STAT = """\
cpu  99 99 99 99 99 99 99 99
cpu0 10 1 2 70 5 3 4 5 9 9
cpu1 20 0 0 75 0 0 0 5 0 0
cpu7 1 1 1 1 1 1 1 1
intr 5
"""


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfsuite.measure.contention.USABLE_PROCESSORS", frozenset({0, 1}))


def proc(folder: Path, threads: dict[str, str], stat: str = STAT) -> Path:
    for thread, schedstat in threads.items():
        place = folder / "self" / "task" / thread
        place.mkdir(parents=True)
        (place / "schedstat").write_text(schedstat)
    (folder / "stat").write_text(stat)
    return folder


def test_a_mark_sums_threads_and_processors(tmp_path: Path) -> None:
    """Running and waiting of all threads; ticks of the processors that may be used, without guests, who are users'."""
    mark = ContentionMark.take(proc(tmp_path, {"1": "100 7 3\n", "2": "50 1 1\n"}))
    assert (mark.running_ns, mark.waiting_ns, mark.ticks) == (150, 8, (40, 10, 200))


def test_two_marks_make_a_difference(tmp_path: Path) -> None:
    before = ContentionMark.take(proc(tmp_path / "before", {"1": "100 10 3"}))
    stat = STAT.replace("cpu0 10 1 2 70", "cpu0 70 1 2 90").replace("75 0 0 0 5", "85 0 0 0 15")
    after = ContentionMark.take(proc(tmp_path / "after", {"1": "400 110 9"}, stat))
    own_ns = 40 * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    contention = before.until(replace(after, own_ns=before.own_ns + own_ns))
    assert (contention.running_ns, contention.waiting_ns) == (300, 100)
    assert contention.waiting_ratio == 0.25
    assert contention.steal_ratio == 0.1
    assert contention.others_ratio == pytest.approx(0.2)
    assert contention.wall_ns >= 0


def test_more_time_of_its_own_than_the_ticks_show_is_nobodys(tmp_path: Path) -> None:
    """Ticks are coarse: where the process had more than they show, others had nothing, and never less."""
    before = ContentionMark.take(proc(tmp_path / "before", {"1": "1 1 1"}))
    after = ContentionMark.take(
        proc(tmp_path / "after", {"1": "1 1 1"}, STAT.replace("cpu0 10 1 2 70", "cpu0 11 1 2 99"))
    )
    assert before.until(replace(after, own_ns=before.own_ns + 10**12)).others_ratio == 0.0


@pytest.mark.parametrize("schedstat", ["", "12", "a b c"])
@pytest.mark.parametrize("stat", ["", "cpu0 1 2 3\n", "cpu0 a b c d e f g h\n", "cpu5 1 2 3 4 5 6 7 8\n", STAT])
def test_what_a_kernel_does_not_say_is_not_measured(tmp_path: Path, schedstat: str, stat: str) -> None:
    before = ContentionMark.take(proc(tmp_path, {"1": "1 1 1", "2": schedstat}, stat))
    contention = before.until(before)
    assert contention.running_ns is contention.waiting_ns is contention.waiting_ratio is None
    assert contention.steal_ratio is contention.others_ratio is None


def test_a_thread_that_ended_does_not_turn_time_back(tmp_path: Path) -> None:
    before = ContentionMark.take(proc(tmp_path / "before", {"1": "100 10 3", "2": "900 90 1"}))
    after = ContentionMark.take(proc(tmp_path / "after", {"1": "200 20 3"}))
    assert (before.until(after).running_ns, before.until(after).waiting_ns) == (0, 0)
    assert before.until(after).waiting_ratio == 0.0


def stretch(wall_ns: int, waiting_ns: int | None, others_ratio: float | None) -> Contention:
    return Contention(
        wall_ns=wall_ns, running_ns=wall_ns, waiting_ns=waiting_ns, steal_ratio=0.0, others_ratio=others_ratio
    )


def test_several_stretches_are_one() -> None:
    total = Contention.total([stretch(100, 1, 0.1), stretch(300, 7, 0.5)])
    assert (total.wall_ns, total.running_ns, total.waiting_ns) == (400, 400, 8)
    assert total.others_ratio == pytest.approx(0.4)
    assert total.waiting_ratio == pytest.approx(8 / 408)


def test_what_is_not_known_of_one_stretch_is_not_known_of_all() -> None:
    """A gap is not filled, and no stretch at all says nothing."""
    total = Contention.total([stretch(100, None, 0.1), stretch(300, 7, None)])
    assert (total.waiting_ns, total.waiting_ratio, total.others_ratio) == (None, None, None)
    assert Contention.total([]).others_ratio is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"waiting_ns": 300, "others_ratio": 0.2}, 0.3),
        ({"waiting_ns": 300, "others_ratio": None}, 0.3),
        ({"waiting_ns": 300, "others_ratio": 0.01}, 0.0),
        ({"waiting_ns": 300, "others_ratio": 0.0, "throttled_ns": 400}, 0.4),
        ({"waiting_ns": 1900, "others_ratio": 0.5}, MOST_LOST_RATIO),
        ({"waiting_ns": None, "others_ratio": 0.0, "steal_ratio": 0.1}, 0.1),
    ],
)
def test_what_others_took_at_most(fields: dict[str, float | None], expected: float) -> None:
    """All waiting in full, unless the threads are known to wait for each other; quotas and the hypervisor, too."""
    known = {"wall_ns": 1000, "running_ns": 1000, "steal_ratio": 0.0, **fields}
    assert Contention.from_plain(known).lost_ratio == pytest.approx(expected)
