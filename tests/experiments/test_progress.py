"""The line that tells how far the measurement is."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from perfsuite.experiments.progress import ProgressLine


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


def test_nothing_is_drawn_without_a_reporter() -> None:
    progress = ProgressLine(None, 1)
    progress.step("llama.cpp")
    progress.finish()
