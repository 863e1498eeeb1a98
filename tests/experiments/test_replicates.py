"""What a group of replicates tells of the machine, and the line that tells how far the measurement is."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupWitness, Replicates, collect_replicates
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.competition import Competition
from perfsuite.measure.contention import Contention
from perfsuite.verdict.compare import MIN_SAMPLES

_HALF = Contention(wall_ns=1, running_ns=3, waiting_ns=6, steal_ratio=None, others_ratio=None)
_PAYLOAD = {"contention": _HALF.to_plain()}


class _LoadedBoard(LocalBoard):
    """A board with one load after the other, throttled from the second on."""

    def __init__(self, *loads: float) -> None:
        super().__init__(cache_dir=Path())
        self._left = list(loads)

    def covariates(self) -> Mapping[str, float | None]:
        load = self._left.pop(0)
        throttled = 0.0 if self._left else 1.0
        return {"load_average": load, "cpu_mhz": None, "temperature_celsius": 40.5, "throttled": throttled}


def witness() -> GroupWitness:
    config = SimpleNamespace(board=_LoadedBoard(0.5, 1.5, 2.5), began_s=time.monotonic() - 5.0)
    return GroupWitness(config=cast("RunConfig", config), group="llama", what="a test", progress=ProgressLine(None, 1))


def test_the_machine_is_read_before_a_replicate_and_never_after() -> None:
    """One reading a replicate, the first one is the group's; what is not measured is None, what is measured rounded."""
    log = witness()
    assert log.started_with == {}
    for complaint in (None, "busy", None):
        log.before(0)
        log.after([_PAYLOAD], complaint)
    assert log.started_with["load_average"] == 0.5
    assert [each.load_average for each in log.states] == [0.5, 1.5, 2.5]
    assert [each.is_valid for each in log.states] == [True, False, True]
    assert [each.throttled for each in log.states] == [False, False, True]
    first = log.states[0]
    assert 5.0 <= first.at_s <= log.states[1].at_s < 60.0
    assert (first.cpu_mhz, first.temperature_celsius, first.steal_ratio) == (None, 40.5, None)
    assert (first.waiting_ratio, first.battery_ratio) == (0.666667, None)


def payload(waiting_ns: int) -> dict[str, Any]:
    contention = {"wall_ns": 1, "running_ns": 100, "waiting_ns": waiting_ns, "steal_ratio": None, "others_ratio": None}
    return {"contention": contention, "peak_rss_bytes": 1}


class _Board(LocalBoard):
    """A machine on which nobody is at work when one looks."""

    def competition(self) -> Competition:
        return Competition(others_ratio=0.01, processors={"cc1plus": 0.3})


def collected(
    *payloads: dict[str, Any], n_replicates: int = 10, wait_quiet_s: float = 0.0, budget_s: float | None = None
) -> Replicates:
    """What comes of these payloads and of Ctrl-C after them; waiting for a tenth of the time is a complaint."""

    def complain(contention: Contention, _: object) -> str | None:
        return "somebody else was at work" if (contention.waiting_ratio or 0.0) >= 0.1 else None

    config = SimpleNamespace(
        n_replicates=n_replicates,
        profile=SimpleNamespace(max_others_ratio=0.05),
        board=_Board(cache_dir=Path()),
        began_s=time.monotonic(),
        wait_quiet_s=wait_quiet_s,
    )
    runs = Mock(side_effect=[*payloads, KeyboardInterrupt])
    progress = ProgressLine(None, n_replicates)
    return collect_replicates(
        cast("RunConfig", config), runs, complain, "a test", progress, group="llama", budget_s=budget_s
    )


def test_time_ends_what_has_enough_replicates() -> None:
    """Without any time there are the fewest that say anything, and nobody complains."""
    found = collected(*(payload(0) for _ in range(9)), budget_s=0.0)
    assert (len(found.payloads), found.problems, found.group.broken_off_by) == (MIN_SAMPLES, (), None)


def test_what_was_left_out_is_shown_where_too_few_were_valid() -> None:
    """Where enough are valid nothing else is shown; what competed from the beginning is noted once."""
    busy = [payload(100) for _ in range(4)]
    found = collected(*busy, n_replicates=4)
    assert (found.payloads, found.shown_payloads, found.group.n_discarded) == ((), tuple(busy), 4)
    (note,) = found.group.notes
    assert note.startswith("the machine was busy from the beginning: somebody else was at work; others take 1 %")
    late = collected(payload(0), payload(100), payload(100), payload(0), payload(0), n_replicates=3)
    assert (late.group.notes, late.rough_payloads, len(late.shown_payloads), late.group.n_discarded) == ((), (), 3, 2)


def test_quiet_is_waited_for_once() -> None:
    found = collected(*(payload(100) for _ in range(6)), n_replicates=4, wait_quiet_s=30.0)
    assert (len(found.shown_payloads), found.group.n_discarded, len(found.group.notes)) == (4, 6, 1)
    assert found.problems == ("somebody else was at work in 4 of 4 replicates; free the machine and run again",)
    again = collected(payload(100), payload(100), *(payload(0) for _ in range(4)), n_replicates=4, wait_quiet_s=30.0)
    assert (len(again.payloads), again.problems, again.group.n_discarded) == (4, (), 2)


class _Terminal:
    """Keeps what a terminal would show."""

    def __init__(self, *, isatty: bool) -> None:
        self.isatty = isatty
        self.rewritten: list[str] = []
        self.lines: list[str] = []

    def rewrite(self, line: str, **_: Any) -> None:
        self.rewritten.append(line)

    def write_line(self, line: str) -> None:
        self.lines.append(line)


def test_a_terminal_has_one_live_line() -> None:
    """From the second step on it tells the time left; the count never runs past its end."""
    before, terminal = threading.active_count(), _Terminal(isatty=True)
    progress = ProgressLine(terminal, 2)
    progress.step("ceilings")
    progress.step("llama.cpp")
    assert threading.active_count() == before  # nothing is drawn beside what is measured
    progress.finish()
    assert terminal.rewritten[0] == "perfsuite: measuring ceilings (1/2)"
    assert terminal.rewritten[1].startswith("perfsuite: measuring llama.cpp (2/2), about 0 s left")
    assert terminal.rewritten[2].startswith("perfsuite: measured in 0.")
    terminal = _Terminal(isatty=True)
    progress = ProgressLine(terminal, 0)
    progress.step("a")
    progress.add_steps(1)
    progress.step("b")
    progress.step("c")
    assert terminal.rewritten[-1].startswith("perfsuite: measuring c (3/3)")


def test_a_log_has_few_lines() -> None:
    terminal = _Terminal(isatty=False)
    progress = ProgressLine(terminal, 50)
    for _ in range(50):
        progress.step("llama.cpp")
    progress.finish()
    assert len(terminal.lines) == 2
    assert terminal.lines[0] == "perfsuite: measuring llama.cpp (1/50)"
    assert terminal.lines[1].startswith("perfsuite: measured in")


def test_a_long_line_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would fold is cut, for only one line is overwritten; controls in a name are written out."""
    monkeypatch.setenv("COLUMNS", "60")
    terminal = _Terminal(isatty=True)
    ProgressLine(terminal, 1).step("kernel/\x1b[31m" + "x" * 80)
    (shown,) = terminal.rewritten
    assert len(shown) == 59
    assert shown.startswith(r"perfsuite: measuring kernel/\x1b[31mx")
