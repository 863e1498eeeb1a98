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
from typing import TYPE_CHECKING, Protocol

from perfsuite.cli.ending import drop
from perfsuite.report.visible import terminal_text

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

#: Least time between two lines of one stage, and between two drawings of a bar.
_LINE_PERIOD_S, _BAR_PERIOD_S = 15.0, 0.1

#: A line tells the time from here on.
_LEAST_TOLD_S = 1.0

#: Stages may take this long a step, and still have a time left.
_ESTIMATE_PERIOD_S = 7200.0


class Progress(Protocol):
    """What a command that measures tells of itself."""

    def step(self, what: str, n_done: int = 0, n_all: int | None = None) -> None:
        """Say what begins now, and how many of how many steps of it are done, where that is known."""

    def remark(self, text: str) -> None:
        """Say something that is worth a line of its own."""


@contextmanager
def progress(command: str, options: argparse.Namespace) -> Iterator[Progress]:
    """Yield what tells how far the command is, as standard error and ``--quiet`` have it."""
    if getattr(options, "quiet", False) or not sys.stderr.isatty():
        yield remarks(command, options)
        return
    from rich.console import Console  # drawing is slow to import

    console = Console(file=sys.stderr)
    if console.is_dumb_terminal:
        yield _Lines(command)
        return
    with _bars(console) as bars:
        yield _Drawn(command, bars)


def remarks(command: str, options: argparse.Namespace) -> Progress:
    """Return what tells of a command that itself writes as it goes, for which a bar would be in the way."""
    return _Silence() if getattr(options, "quiet", False) else _Lines(command)


class _Silence:
    """Tells nothing."""

    def step(self, what: str, n_done: int = 0, n_all: int | None = None) -> None:
        """Say nothing."""

    def remark(self, text: str) -> None:
        """Say nothing."""


class _Lines:
    """Plain lines: one when a stage begins, then one every few seconds, with the time left where that is known."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._stage = ""
        self._begun_s = self._stage_begun_s = time.monotonic()
        self._told_s = 0.0

    def step(self, what: str, n_done: int = 0, n_all: int | None = None) -> None:
        """Print a line where the stage is another one, or the last line is old enough."""
        now_s = time.monotonic()
        if (stage := _stage(what)) != self._stage:
            self._stage, self._stage_begun_s = stage, now_s
        elif n_done != n_all and now_s - self._told_s < _LINE_PERIOD_S:
            return
        self._told_s = now_s
        self.remark(f"{what}{self._count(n_done, n_all, now_s)}")

    def remark(self, text: str) -> None:
        """Print a line; where standard error takes none, go on."""
        try:
            print(f"{self._command}: {terminal_text(text)}", file=sys.stderr, flush=True)
        except OSError:
            drop(sys.stderr)  # or Python fails at its end on what is left to write

    def _count(self, n_done: int, n_all: int | None, now_s: float) -> str:
        if n_all is None:
            elapsed_s = now_s - self._begun_s
            return f" ({elapsed_s:.0f} s)" if elapsed_s >= _LEAST_TOLD_S else ""
        left_s = (now_s - self._stage_begun_s) / n_done * (n_all - n_done) if n_done else None
        return f" ({n_done}/{n_all})" + ("" if left_s is None else f", about {left_s:.0f} s left")


class _Drawn:
    """One line at the bottom of a terminal, drawn at steps only."""

    def __init__(self, command: str, bars: Bars) -> None:
        self._command = command
        self._bars = bars
        self._task: TaskID | None = None
        self._stage = ""
        self._drawn_s = 0.0

    def step(self, what: str, n_done: int = 0, n_all: int | None = None) -> None:
        """Draw the line anew, unless it was drawn a moment ago."""
        now_s = time.monotonic()
        text = f"{self._command}: {terminal_text(what)}"
        if self._task is None or (_stage(what) != self._stage and n_all is not None):
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task = self._bars.add_task(text, total=None)
            self._drawn_s = 0.0
        self._stage = _stage(what)
        self._bars.update(self._task, description=text, completed=n_done, total=n_all)
        if now_s - self._drawn_s >= _BAR_PERIOD_S or n_done == n_all:
            self._drawn_s = now_s
            self._bars.refresh()

    def remark(self, text: str) -> None:
        """Print a line above the one that is drawn."""
        self._bars.console.print(
            f"{self._command}: {terminal_text(text)}", markup=False, highlight=False, soft_wrap=True
        )


def _stage(what: str) -> str:
    """Return what stays the same from step to step."""
    return re.sub(r"\d+", "#", what)


def _bars(console: object) -> Bars:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Counted(ProgressColumn):
        """A column of stages whose number of steps is known."""

        def __init__(self, column: ProgressColumn) -> None:
            super().__init__()
            self._column = column

        def render(self, task: Task) -> Text:
            """Leave the column empty where the number is not known."""
            return Text() if task.total is None else self._column(task)  # type: ignore[return-value]

    assert isinstance(console, Console)
    return Progress(
        TextColumn("{task.description}", markup=False),
        Counted(BarColumn(bar_width=24)),
        Counted(MofNCompleteColumn()),
        TimeElapsedColumn(),
        Counted(TimeRemainingColumn()),
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        speed_estimate_period=_ESTIMATE_PERIOD_S,
    )
