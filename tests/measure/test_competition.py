"""Who competes for the processors, from a made-up /proc."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from perfsuite.measure.competition import Competition, await_quiet, look_for_competition
from perfsuite.measure.contention import USABLE_PROCESSORS

OWN, CHILD, OTHER = os.getpid(), 10**8 + 1, 10**8 + 2
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def write_process(proc: Path, number: int, name: str, parent: int, ticks: int, start: int = 7) -> None:
    fields = ["0"] * 50
    fields[1], fields[11], fields[19] = str(parent), str(ticks), str(start)
    place = proc / str(number)
    place.mkdir(parents=True, exist_ok=True)
    (place / "stat").write_text(f"{number} ({name}) {' '.join(['S', *fields[1:]])}")


#: Looks at a folder while something happens.
Look = Callable[[Callable[[], None]], Competition]


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Look]:
    """Look at a folder in which something happens meanwhile, which takes a second by the clock of the processors."""
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    (tmp_path / "stat").write_text("btime 0\n")
    (tmp_path / "self" / "task").mkdir(parents=True)
    write_process(tmp_path, OWN, "pytest", 1, 100)

    def looked(meanwhile: Callable[[], None]) -> Competition:
        now_ns = [0]
        monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns[0])

        def sleep(length_s: float) -> None:
            now_ns[0] += round(length_s * 1e9)
            meanwhile()

        monkeypatch.setattr(time, "sleep", sleep)
        return look_for_competition(1.0)

    yield looked
    psutil.process_iter.cache_clear()  # it keeps processes with the folder that they were found in


def test_others_are_named_by_what_they_kept_busy(tmp_path: Path, look: Look) -> None:
    """Processes of one name count together, one that has just begun in full; this process and its children do not."""
    write_process(tmp_path, OTHER, "a) (b", 1, 500)

    def meanwhile() -> None:
        write_process(tmp_path, OWN, "pytest", 1, 100 + TICKS_PER_S)
        write_process(tmp_path, CHILD, "worker", OWN, TICKS_PER_S)
        write_process(tmp_path, CHILD + 10, "thread", CHILD, TICKS_PER_S)
        write_process(tmp_path, OTHER, "a) (b", 1, 500 + TICKS_PER_S // 2)
        write_process(tmp_path, OTHER + 1, "cc1plus", OTHER, TICKS_PER_S)
        write_process(tmp_path, OTHER + 2, "cc1plus", OTHER, TICKS_PER_S // 2)

    found = look(meanwhile)
    assert found.processors == {"cc1plus": 1.5, "a) (b": 0.5}
    assert found.text == "cc1plus 150 %, a) (b 50 % of a processor"


def test_a_number_that_is_given_away_again_is_another_process(tmp_path: Path, look: Look) -> None:
    write_process(tmp_path, OTHER, "old", 1, 10_000, start=1)
    found = look(lambda: write_process(tmp_path, OTHER, "new", 1, TICKS_PER_S, start=2))
    assert found.processors == {"new": 1.0}


def test_the_share_is_told_where_no_process_can_be_seen(tmp_path: Path, look: Look) -> None:
    """A board that hides others' processes says how much of the processors they took; one that knows neither, so."""

    def write_stat(busy: int, idle: int) -> None:
        lines = (f"cpu{number} {busy} 0 0 {idle} 0 0 0 0" for number in USABLE_PROCESSORS)
        (tmp_path / "stat").write_text("\n".join(["btime 0", *lines]))

    write_stat(0, 0)
    found = look(lambda: write_stat(10**6, 3 * 10**6))
    assert found.others_ratio == pytest.approx(0.25, abs=0.01)
    assert found.text == "others take 25 % of the processors"
    assert Competition(others_ratio=None).text == "who competes cannot be seen"


def test_quiet_must_last_some_looks() -> None:
    ratios = [0.5, 0.0, 0.01, 0.5, *[0.02] * 6, 0.9]
    assert await_quiet(lambda: Competition(others_ratio=ratios.pop(0)), limit_ratio=0.05, wait_s=300.0)
    assert ratios == [0.9]


def test_a_wait_for_quiet_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time that it was given, and at once where nobody knows what others take."""
    now_s = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(now_s)))
    n_looks = []

    def look() -> Competition:
        n_looks.append(1)
        return Competition(others_ratio=0.5)

    assert not await_quiet(look, limit_ratio=0.05, wait_s=7.0)
    assert len(n_looks) == 6
    assert not await_quiet(lambda: Competition(others_ratio=None), limit_ratio=0.05, wait_s=1e9)
