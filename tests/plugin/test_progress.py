"""The line that tells how far the measurement is."""

from __future__ import annotations

from typing import Any, cast

import pytest

from perfsuite.plugin.progress import ProgressLine


class _Terminal:
    """Keeps what a terminal would show."""

    def __init__(self, *, isatty: bool) -> None:
        self.isatty = isatty
        self.rewritten: list[str] = []
        self.lines: list[str] = []

    def rewrite(self, text: str, **_: Any) -> None:
        self.rewritten.append(text)

    def write_line(self, text: str) -> None:
        self.lines.append(text)


def _line(terminal: _Terminal, n_steps: int) -> ProgressLine:
    return ProgressLine(cast(pytest.TerminalReporter, terminal), n_steps)


def test_a_terminal_has_one_live_line() -> None:
    """On a terminal each step overwrites the line, and from the second on tells the time left."""
    terminal = _Terminal(isatty=True)
    progress = _line(terminal, 2)
    progress.step("ceilings")
    progress.step("llama.cpp")
    progress.finish()
    assert terminal.rewritten[0] == "perfsuite: measuring ceilings (1/2)"
    assert terminal.rewritten[1].startswith("perfsuite: measuring llama.cpp (2/2), about 0 s left")
    assert terminal.rewritten[2].startswith("perfsuite: measured in 0.")


def test_a_log_has_few_lines() -> None:
    """Where the output is not a terminal, steps in quick succession are one line."""
    terminal = _Terminal(isatty=False)
    progress = _line(terminal, 50)
    for _ in range(50):
        progress.step("llama.cpp")
    progress.finish()
    assert len(terminal.lines) == 2
    assert terminal.rewritten == []


def test_repeated_replicates_extend_the_plan() -> None:
    """Steps that are added show in the total."""
    terminal = _Terminal(isatty=True)
    progress = _line(terminal, 2)
    progress.add_steps(3)
    progress.step("llama.cpp")
    assert "(1/5)" in terminal.rewritten[0]


def test_without_a_reporter_nothing_is_told() -> None:
    """A run without a terminal reporter measures in silence."""
    progress = ProgressLine(None, 1)
    progress.step("ceilings")
    progress.finish()
