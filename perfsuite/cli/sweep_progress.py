"""How far a sweep is: a bar with the time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfsuite.verdict.shapes.sweep import Told

_QUIET_INTERVAL_S = 15.0


@contextmanager
def progress(command: str) -> Iterator[Told]:
    """Yield what is told of each step; all goes to standard error."""
    if not sys.stderr.isatty():
        yield _Lines(command)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(file=sys.stderr)) as bars:

        def told(stage: str, n_done: int, n_all: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(f"{command}: {stage}", total=n_all)
            bars.update(tasks[stage], completed=n_done, total=n_all)

        yield told


class _Lines:
    """Plain lines: one when a stage begins, then one every few seconds with the time left."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._stage = ""
        self._started_s = self._told_s = 0.0

    def __call__(self, stage: str, n_done: int, n_all: int) -> None:
        now_s = time.monotonic()
        if stage != self._stage:
            self._stage, self._started_s = stage, now_s
        elif now_s - self._told_s < _QUIET_INTERVAL_S:
            return
        self._told_s = now_s
        left_s = (now_s - self._started_s) / n_done * (n_all - n_done) if n_done else None
        left = "" if left_s is None else f", about {left_s:.0f} s left"
        print(f"{self._command}: {stage} ({n_done}/{n_all}){left}", file=sys.stderr, flush=True)
