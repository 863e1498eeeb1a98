"""One live line while measuring, with the time left; a line now and then where the output is not a terminal."""

from __future__ import annotations

import time

import pytest

_QUIET_INTERVAL_S = 15.0


class ProgressLine:
    """Tells how far the measurement is."""

    def __init__(self, reporter: pytest.TerminalReporter | None, n_steps: int) -> None:
        self._reporter = reporter
        self._n_steps = n_steps
        self._n_done = 0
        self._started_s = time.monotonic()
        self._told_s = 0.0
        self._is_live = reporter is not None and reporter.isatty

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
        if self._is_live:
            self._reporter.rewrite(f"perfsuite: {text}", erase=True)
        elif time.monotonic() - self._told_s >= _QUIET_INTERVAL_S:
            self._reporter.write_line(f"perfsuite: {text}")
            self._told_s = time.monotonic()
