"""How far a command is, on standard error: a bar on a terminal, a line now and then elsewhere, nothing with --quiet.

Nothing here runs beside what is measured: there is no thread, and all is drawn at the moment of a step.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from perfsuite.cli.ending import drop
from perfsuite.report.visible import terminal_text

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

#: Least time between two lines of one stage.
_LINE_PERIOD_S = 15.0

#: A line tells the time from here on.
_LEAST_TOLD_S = 1.0

#: Stages may take this long a step, and still have a time left.
_ESTIMATE_PERIOD_S = 7200.0


class Progress:
    """Plain lines: one when a stage begins, then one every few seconds, with the time left where that is known."""

    def __init__(self, command: str, *, is_quiet: bool = False) -> None:
        self._command = command
        self._is_quiet = is_quiet
        self._stage = ""
        self._begun_s = self._stage_begun_s = time.monotonic()
        self._told_s = 0.0

    def step(self, what: str, n_done: int = 0, n_all: int | None = None) -> None:
        """Say what begins now, and how many of how many steps of it are done, where that is known."""
        now_s = time.monotonic()
        if self._is_new(what):
            self._stage_begun_s = now_s
        elif n_done != n_all and now_s - self._told_s < _LINE_PERIOD_S:
            return
        self._told_s, elapsed_s = now_s, now_s - self._begun_s
        text = f" ({elapsed_s:.0f} s)" if elapsed_s >= _LEAST_TOLD_S else ""
        if n_all is not None:
            left_s = (now_s - self._stage_begun_s) / n_done * (n_all - n_done) if n_done else None
            text = f" ({n_done}/{n_all})" + ("" if left_s is None else f", about {left_s:.0f} s left")
        self.remark(f"{what}{text}")

    def remark(self, text: str) -> None:
        """Say something that is worth a line of its own; where standard error takes none, go on."""
        if self._is_quiet:
            return
        try:
            print(f"{self._command}: {terminal_text(text)}", file=sys.stderr, flush=True)
        except OSError:
            drop(sys.stderr)  # or Python fails at its end on what is left to write

    def _is_new(self, what: str) -> bool:
        """Say whether a stage begins, whose words stay the same except their numbers."""
        before, self._stage = self._stage, re.sub(r"\d+", "#", what)
        return self._stage != before


class _Bar(Progress):
    """One line at the bottom of a terminal, drawn at steps only."""

    def __init__(self, command: str, bars: Bars) -> None:
        super().__init__(command)
        self._bars = bars

    def step(self, what: str, n_done: int = 0, n_all: int | None = None) -> None:
        text = f"{self._command}: {terminal_text(what)}"
        if self._is_new(what):
            for each in self._bars.task_ids:
                self._bars.remove_task(each)
            self._bars.add_task(text, total=n_all)
        self._bars.update(self._bars.task_ids[0], description=text, completed=n_done, total=n_all, refresh=True)

    def remark(self, text: str) -> None:
        line = f"{self._command}: {terminal_text(text)}"
        self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def progress(command: str, options: argparse.Namespace) -> Iterator[Progress]:
    """Yield what tells how far the command is, as standard error and ``--quiet`` have it."""
    if getattr(options, "quiet", False) or not sys.stderr.isatty():
        yield remarks(command, options)
        return
    from rich import progress as columns  # drawing is slow to import
    from rich.console import Console

    console = Console(file=sys.stderr)
    if console.is_dumb_terminal:
        yield Progress(command)
        return
    with columns.Progress(
        columns.TextColumn("{task.description}", markup=False),
        columns.BarColumn(bar_width=24),
        columns.MofNCompleteColumn(),
        columns.TimeElapsedColumn(),
        columns.TimeRemainingColumn(),
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        speed_estimate_period=_ESTIMATE_PERIOD_S,
    ) as bars:
        yield _Bar(command, bars)


def remarks(command: str, options: argparse.Namespace) -> Progress:
    """Return what tells of a command that itself writes as it goes, for which a bar would be in the way."""
    return Progress(command, is_quiet=getattr(options, "quiet", False))
