"""One live line while measuring, with the time left; a line now and then where the output is not a terminal.

Nothing here runs beside what is measured: there is no thread, and the line is written when a step begins.
"""

from __future__ import annotations

import time

import pytest

from perfsuite.report.terminal_text import terminal_text

_QUIET_INTERVAL_S = 15.0


class ProgressLine:
    """Tells how far the measurement is; nothing with ``-q``."""

    def __init__(self, reporter: pytest.TerminalReporter | None, n_steps: int) -> None:
        is_quiet = reporter is None or reporter.config.get_verbosity() < 0
        self._reporter = None if is_quiet else reporter
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
            width = self._reporter._tw.fullwidth - 1
            shown = line if len(line) <= width else f"{line[: width - 1]}…"  # a second line would stay
            self._reporter.rewrite(shown, erase=True)
        elif time.monotonic() - self._told_s >= _QUIET_INTERVAL_S:
            self._reporter.write_line(line)
            self._told_s = time.monotonic()
