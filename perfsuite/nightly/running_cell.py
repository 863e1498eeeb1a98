"""A cell that is being measured: its folder, its process, and its limit."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.nightly.cell_end import JUNIT_NAME, LOG_NAME, CellEnd, borrowed_place, cell_end, has_waited, log_lines
from perfsuite.nightly.plan import Cell, NightPlan
from perfsuite.records.own_files import own_python
from perfsuite.records.whole_file import make_folder

#: After each signal, how long the processes have.
_PATIENCE_S = ((signal.SIGINT, 20.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))

_POLL_PERIOD_S = 0.1


def end_session(session: int) -> int:
    """Interrupt, then terminate, then kill what is left of a session; return how many processes there were.

    The number of a session is that of the process that began it, and is given to no other one while any is in it.
    """
    found = set(_processes(session))
    for number, patience_s in _PATIENCE_S:
        for pid in _processes(session):
            with suppress(OSError):
                os.kill(pid, number)
        deadline_s = time.monotonic() + patience_s
        while any(_processes(session)) and time.monotonic() < deadline_s:
            time.sleep(_POLL_PERIOD_S)
    return len(found)


def _processes(session: int) -> Iterator[int]:
    """Yield the processes of a session that have not ended.

    *Source*: proc_pid_stat(5): after the name in parentheses, which may hold anything, come the state (field 3), the
    parent, the group and the session (field 6).
    """
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            after_name = stat.read_bytes().rpartition(b")")[2].split()
            if int(after_name[3]) == session and after_name[0] not in (b"Z", b"X"):
                yield int(stat.parent.name)


#: pytest as this Python has it, without labgrid's own plugin: perfsuite speaks to labgrid itself.
PYTEST = own_python("-m", "pytest", "-p", "no:labgrid")

#: The longest that `perfsuite.nightly.keeper` takes to end a cell.
_END_LIMIT_S = 60.0

#: Time between two looks at whether the board is there.
_LOOK_PERIOD_S = 1.0


class RunningCell:
    """A cell whose pytest has been started.

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
        #: When the board was there; None while it is waited for.
        self._measuring_s = None if cell.is_of_farm else self._began_s
        self._looked_s = self._began_s
        keeper = own_python("-m", "perfsuite.nightly.keeper", str(self._folder / LOG_NAME), str(lock))
        self._keeper = subprocess.Popen(
            [*keeper, *program, *cell.words, *more, *_places(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(lock,),
        )

    def ended(self) -> CellEnd | None:
        """Return how the cell ended, None where it has not; one that is over its limit is stopped."""
        status = self._keeper.poll()
        if status is None:
            if self._stopped is None and (why := self._over_limit(time.monotonic())):
                self.stop(why)
            return None
        self.stop("")
        end_session(self._keeper.pid)  # a keeper that was killed leaves its pytest at work
        seconds = time.monotonic() - self._began_s
        return cell_end(self._folder, status if status >= 0 else 128 - status, seconds, self._stopped or None)

    def stop(self, why: str) -> None:
        """Let the cell end as by Ctrl-C; it is not waited for."""
        if self._stopped is None:
            self._stopped = why
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()

    def wait(self) -> None:
        """Wait until a cell that was stopped has ended."""
        try:
            self._keeper.wait(_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()

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
