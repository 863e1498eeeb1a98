"""One live line while measuring, with the time left; a line now and then where the output is not a terminal.

Nothing here runs beside what is measured: there is no thread, and the line is written when a step begins.
"""

from __future__ import annotations

import shutil
import time
from typing import Protocol

from perfsuite.report.visible import terminal_text

_QUIET_INTERVAL_S = 15.0


class Terminal(Protocol):
    """Where progress is shown; pytest's terminal reporter is one."""

    @property
    def isatty(self) -> bool:
        """Whether a line can be drawn over."""

    def write_line(self, line: str) -> None:
        """Write a line that stays."""

    def rewrite(self, line: str, *, erase: bool) -> None:
        """Draw over the line that was written last."""


class ProgressLine:
    """Shows how far the measurement is; nothing without a terminal."""

    def __init__(self, reporter: Terminal | None, n_steps: int) -> None:
        self._reporter = reporter
        self._n_steps = n_steps
        self._n_done = 0
        self._started_s = time.monotonic()
        self._told_s = 0.0
        self._is_live = reporter is not None and reporter.isatty

    def say(self, text: str) -> None:
        """Write a line that stays, whatever is drawn over afterwards."""
        if self._reporter is not None:
            end_of_drawn = "\n" if self._is_live and self._n_done else ""
            self._reporter.write_line(f"{end_of_drawn}perfsuite: {terminal_text(text)}")

    def show(self, what: str, n_done: int = 0, n_all: int | None = None, /) -> None:
        """Show what is done within a step, and how many of how many parts of it are."""
        self._tell(f"{what} ({n_done}/{n_all})" if n_all else what)

    def step(self, what: str) -> None:
        """Announce that a step begins."""
        self.extend_to(self._n_done + 1)
        self._tell(f"measuring {what} ({self._n_done + 1}/{self._n_steps}){self._time_left()}")
        self._n_done += 1

    def add_steps(self, n_more: int) -> None:
        """Extend the plan, when replicates must be repeated."""
        self._n_steps += n_more

    def extend_to(self, n_steps: int) -> None:
        """Plan for at least so many steps."""
        self._n_steps = max(self._n_steps, n_steps)

    def finish(self) -> None:
        """End the line with the time that it all took."""
        elapsed_s = time.monotonic() - self._started_s
        self._told_s = 0.0
        self._tell(f"measured in {elapsed_s:.1f} s")
        if self._reporter is not None and self._is_live:
            self._reporter.write_line("")

    def _time_left(self) -> str:
        if self._n_done == 0:
            return ""
        elapsed_s = time.monotonic() - self._started_s
        left_s = elapsed_s / self._n_done * (self._n_steps - self._n_done)
        return f", about {left_s:.0f} s left"

    def _tell(self, text: str) -> None:
        if self._reporter is None:
            return
        line = f"perfsuite: {terminal_text(text)}"
        if self._is_live:
            width = shutil.get_terminal_size().columns - 1
            shown = line if len(line) <= width else f"{line[: width - 1]}…"  # a second line would stay
            self._reporter.rewrite(shown, erase=True)
        elif time.monotonic() - self._told_s >= _QUIET_INTERVAL_S:
            self._reporter.write_line(line)
            self._told_s = time.monotonic()
