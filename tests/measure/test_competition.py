"""Who competes for the processors, from made-up looks."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from perfsuite.device.machine import NO_CONDITIONS
from perfsuite.measure.board.link import MessageLink
from perfsuite.measure.board.program import Program
from perfsuite.measure.competition import Competition, await_quiet

WELCOME = {"home": "/home", "bundle": "/home/bundle", "cache_dir": "/cache", "is_root": False}
MACHINE = {
    "hostname": "board",
    "architecture": "aarch64",
    "n_processors": 2,
    "usable_processors": [0, 1],
    "properties": [],
    "variables": [],
}

#: A process in a look: number, start, name, ticks of a hundredth of a second, and whether it is the program's own.
Process = tuple[int, int, str, int, bool]


def looked(before: list[Process], after: list[Process], *, busy: int = 0, idle: int = 0) -> Competition:
    """Return what a look of a second came to, in which the processors had so many ticks each."""
    looks = [
        {"at_ns": at * 10**9, "own_ns": 0, "processes": processes, "stat": stat_of(at * busy, at * idle)}
        for at, processes in enumerate((before, after))
    ]
    answers: dict[str, Any] = {
        "machine": MACHINE,
        "competition": looks,
        "snapshot": {"links": [], "files": [["proc/meminfo", b"MemTotal: 4 kB"]]},
    }

    class Link:
        def ask(self, kind: str, _: object, **__: object) -> Any:
            return answers[kind]

    program = Program(
        cast(MessageLink, Link()), WELCOME, conditions=NO_CONDITIONS, answer_s=1.0, beyond_worker_s=1.0, root=None
    )
    return program.competition()


def stat_of(busy: int, idle: int) -> bytes:
    return "\n".join(f"cpu{number} {busy} 0 0 {idle} 0 0 0 0" for number in (0, 1)).encode()


def test_others_are_named_by_what_they_kept_busy() -> None:
    """Processes of one name count together, one that has just begun in full; the program and its children do not."""
    before = [(7, 1, "a) (b", 500, False), (9, 1, "worker", 0, True)]
    after = [
        *((7, 1, "a) (b", 550, False), (9, 1, "worker", 100, True)),
        *((11, 2, "cc1plus", 100, False), (12, 2, "cc1plus", 50, False)),
    ]
    found = looked(before, after)
    assert found.processors == {"cc1plus": 1.5, "a) (b": 0.5}
    assert found.text == "cc1plus 150 %, a) (b 50 % of a processor"


def test_a_number_that_is_given_away_again_is_another_process() -> None:
    assert looked([(7, 1, "old", 10_000, False)], [(7, 2, "new", 100, False)]).processors == {"new": 1.0}


def test_the_share_is_told_where_no_process_can_be_seen() -> None:
    """A board that hides others' processes says how much of the processors they took; one that knows neither, so."""
    found = looked([], [], busy=25, idle=75)
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
