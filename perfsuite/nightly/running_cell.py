"""A cell that is being measured: its folder, its process, and its limit."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from perfsuite.device.process_start import end_with_parent
from perfsuite.errors import PerfsuiteError
from perfsuite.nightly.cell_end import JUNIT_NAME, LOG_NAME, CellEnd, borrowed_place, cell_end, has_waited, log_lines
from perfsuite.nightly.plan import Cell, NightPlan
from perfsuite.records.own_files import own_python
from perfsuite.records.whole_file import make_folder

#: pytest as this Python has it, without labgrid's own plugin: perfsuite speaks to labgrid itself.
PYTEST = own_python("-m", "pytest", "-p", "no:labgrid")

#: How a cell is asked to end: after each signal, how long its processes have. All together is `END_LIMIT_S`.
_PATIENCE_S = ((signal.SIGINT, 30.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))
END_LIMIT_S = sum(patience_s for _, patience_s in _PATIENCE_S)

#: Time between two looks at whether the board is there.
_LOOK_PERIOD_S = 1.0


class RunningCell:
    """A cell whose pytest has been started.

    The kernel interrupts it as Ctrl-C does when the night ends, however that ends: so it keeps what it measured, and
    gives its board back.

    `program` is pytest with its usual words, `more` what this run alone is given beside its cell, such as places to
    avoid; `lock` the handle of the night's lock, which the run holds as long as it is there; `deadline_s` the end of
    the night, of `time.monotonic`.
    """

    def __init__(
        self,
        cell: Cell,
        night: Path,
        plan: NightPlan,
        *,
        program: Sequence[str],
        lock: int,
        deadline_s: float,
        more: Sequence[str] = (),
    ) -> None:
        self.cell = cell
        self._folder = _fresh_folder(night / cell.key)
        self._began_s = time.monotonic()
        self._plan = plan
        self._deadline_s = deadline_s
        self._stopped: str | None = None
        #: How it is still to be asked to end, and when next.
        self._requests: deque[tuple[int, float]] = deque()
        self._request_at_s = 0.0
        #: When the board was there; None while it is waited for.
        self._measuring_s = None if cell.is_of_farm else self._began_s
        self._looked_s = self._began_s
        with (self._folder / LOG_NAME).open("ab") as log:
            self._process = subprocess.Popen(
                [*program, *cell.words, *more, *_places(self._folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(lock,),
                preexec_fn=partial(_follow, os.getpid()),
            )

    def ended(self) -> CellEnd | None:
        """Return how the cell ended, None where it has not; one that is over its limit is stopped."""
        status, now_s = self._process.poll(), time.monotonic()
        if status is None:
            if self._stopped is None and (why := self._over_limit(now_s)):
                self.stop(why)
            if self._requests and now_s >= self._request_at_s:
                number, patience_s = self._requests.popleft()
                self._request_at_s = now_s + patience_s
                self._signal(number)
            return None
        self._signal(signal.SIGKILL)  # what it has left
        return cell_end(self._folder, status if status >= 0 else 128 - status, now_s - self._began_s, self._stopped)

    def stop(self, why: str) -> None:
        """Let the cell end as by Ctrl-C, and by more than that in the end; `ended` has to be called until it has."""
        if self._stopped is None:
            self._stopped = why
            self._requests.extend(_PATIENCE_S)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _over_limit(self, now_s: float) -> str | None:
        """Say which limit has passed; waiting for a board is not compared with the cell."""
        if now_s > self._deadline_s:
            return f"the night's limit of {self._plan.night_limit_s:g} s had passed"
        self._look_for_board(now_s)
        limit_s, wait_s = self._plan.cell_limit_s, self._plan.wait_s
        if self._measuring_s is None:
            is_over = now_s - self._began_s > wait_s + limit_s
            return f"had no board after {wait_s + limit_s:g} s" if is_over else None
        if now_s - self._measuring_s <= limit_s:
            return None
        if now_s - self._measuring_s <= limit_s + wait_s and has_waited(log_lines(self._folder)):
            return None
        return f"took longer than its limit of {limit_s:g} s"

    def _look_for_board(self, now_s: float) -> None:
        if self._measuring_s is None and now_s - self._looked_s > _LOOK_PERIOD_S:
            self._looked_s = now_s
            if borrowed_place(log_lines(self._folder)) is not None:
                self._measuring_s = now_s


def _follow(night: int) -> None:
    """Be interrupted with the night, also where that was started in the background, which ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent(night, signal.SIGINT)


def _places(folder: Path) -> tuple[str, ...]:
    return (f"--perf-dir={folder}", f"--junitxml={folder / JUNIT_NAME}")


def _fresh_folder(folder: Path) -> Path:
    """Make a cell's folder; one of an earlier attempt is kept beside it, with a number."""
    try:
        if folder.exists():
            number = next(n for n in range(1, 10_000) if not folder.with_name(f"{folder.name}.attempt-{n}").exists())
            folder.rename(folder.with_name(f"{folder.name}.attempt-{number}"))
        make_folder(folder)
    except OSError as error:
        raise PerfsuiteError(f"{folder}: cannot be made ({error.strerror}); free the disk, then --resume") from error
    return folder.absolute()
