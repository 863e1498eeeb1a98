"""Runs the cells of a night: boards side by side, the cells of a board one after the other."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path

from perfsuite.device.process_start import end_with_parent
from perfsuite.errors import PerfsuiteError
from perfsuite.nightly.cell_end import JUNIT_NAME, LOG_NAME, CellEnd, borrowed_place, cell_end, has_waited, log_lines
from perfsuite.nightly.night_plan import Cell, NightPlan
from perfsuite.nightly.night_state import NightOrigin, write_state
from perfsuite.records.own_files import own_python
from perfsuite.records.whole_file import make_folder

#: pytest as this Python has it, without labgrid's own plugin: perfsuite speaks to labgrid itself.
PYTEST = own_python("-m", "pytest", "-p", "no:labgrid")

#: How a cell is asked to end: after each signal, how long its processes have. All together is `END_LIMIT_S`.
_PATIENCE_S = ((signal.SIGINT, 30.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))
END_LIMIT_S = sum(patience_s for _, patience_s in _PATIENCE_S)

#: Time between two looks at whether a cell's board is there, and at what has ended.
_BOARD_PERIOD_S, _LOOK_PERIOD_S = 1.0, 0.1


class RunningCell:
    """A cell whose pytest has been started.

    The kernel interrupts it as Ctrl-C does when the night ends, however that ends: so it keeps what it measured, and
    gives its board back.

    `more` is what this run alone is given beside its cell, such as places to avoid.
    """

    def __init__(self, cell: Cell, night: Night, more: Sequence[str] = ()) -> None:
        self.cell = cell
        self._night = night
        self._folder = folder = _fresh_folder(night.folder / cell.key)
        self._began_s = self._looked_s = time.monotonic()
        self._stopped: str | None = None
        #: How it is still to be asked to end, and when next.
        self._requests: deque[tuple[int, float]] = deque()
        self._request_at_s = 0.0
        #: When the board was there; None while it is waited for.
        self._measuring_s = None if cell.is_of_farm else self._began_s
        with (folder / LOG_NAME).open("ab") as log:
            self._process = subprocess.Popen(
                [*night.program, *cell.words, *more, f"--perf-dir={folder}", f"--junitxml={folder / JUNIT_NAME}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(night.lock,),
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
        plan = self._night.plan
        if now_s > self._night.deadline_s:
            return f"the night's limit of {plan.night_limit_s:g} s had passed"
        limit_s, wait_s = plan.cell_limit_s, plan.wait_s
        if self._measuring_s is None:
            if now_s - self._looked_s > _BOARD_PERIOD_S:
                self._looked_s = now_s
                if borrowed_place(log_lines(self._folder)) is not None:
                    self._measuring_s = now_s
            is_over = self._measuring_s is None and now_s - self._began_s > wait_s + limit_s
            return f"had no board after {wait_s + limit_s:g} s" if is_over else None
        if now_s - self._measuring_s <= limit_s:
            return None
        if now_s - self._measuring_s <= limit_s + wait_s and has_waited(log_lines(self._folder)):
            return None
        return f"took longer than its limit of {limit_s:g} s"


def _follow(night: int) -> None:
    """Be interrupted with the night, also where that was started in the background, which ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent(night, signal.SIGINT)


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


@dataclass(slots=True)
class Night:
    """A night that is under way."""

    plan: NightPlan
    folder: Path
    #: By cell: how it ended, as far as the night has come.
    ends: dict[str, CellEnd]
    _: KW_ONLY
    #: The handle of the night's lock, which its runs hold as long as they are there.
    lock: int
    tell: Callable[[str], None]
    origin: NightOrigin
    #: pytest with its usual words.
    program: Sequence[str] = PYTEST
    #: The end of the night, of `time.monotonic`.
    deadline_s: float = field(init=False)
    _running: list[RunningCell] = field(default_factory=list, init=False)
    #: By board of the plan: the places of its farm on which a run broke.
    _aside: defaultdict[str, set[str]] = field(default_factory=partial(defaultdict, set), init=False)

    def __post_init__(self) -> None:
        self.deadline_s = time.monotonic() + self.plan.night_limit_s

    def run(self) -> None:
        """Run what is not finished, and what broke once more at the end; keep each end as it comes.

        However this is left, by an exception or Ctrl-C too, no cell is running afterwards.
        """
        todo = self._unfinished()
        self._round(todo)
        begun = {cell.key for cell in todo if cell.key in self.ends}
        if again := [cell for cell in self._unfinished() if cell.key in begun]:
            self.tell(f"{len(again)} of {len(self.plan.cells)} cells broke, and are tried again")
            self._round(again)

    def _unfinished(self) -> list[Cell]:
        return [cell for cell in self.plan.cells if not (end := self.ends.get(cell.key)) or not end.is_finished]

    def _round(self, cells: Sequence[Cell]) -> None:
        waiting: defaultdict[str, deque[Cell]] = defaultdict(deque)
        for cell in cells:
            waiting[cell.lane].append(cell)
        try:
            while self._running or waiting:
                if waiting and time.monotonic() > self.deadline_s:
                    n_left = sum(map(len, waiting.values()))
                    self.tell(f"the night's limit has passed; {n_left} cells are left for --resume")
                    waiting.clear()
                self._begin(waiting)
                self._look()
                time.sleep(_LOOK_PERIOD_S)
        finally:
            self._stop()

    def _begin(self, waiting: dict[str, deque[Cell]]) -> None:
        """Begin the cells whose boards are free, those of a lane in the order of the plan."""
        n_running = Counter(each.cell.lane for each in self._running)
        for lane, cells in tuple(waiting.items()):
            while cells and n_running[lane] < (self.plan.at_once[cells[0].board] if cells[0].is_of_farm else 1):
                n_running[lane] += 1
                cell = cells.popleft()
                self.tell(f"{cell.key}: begins")
                aside = ",".join(sorted(self._aside[cell.board]))
                more = [f"--perf-farm-avoid={aside}"] if aside else []
                self._running.append(RunningCell(cell, self, more))
            if not cells:
                del waiting[lane]

    def _look(self) -> None:
        """Take what has ended, and keep how."""
        n_running = len(self._running)
        for each in tuple(self._running):
            if (end := each.ended()) is not None:
                self._take(each, end)
        if len(self._running) < n_running:
            self._keep()

    def _take(self, ran: RunningCell, end: CellEnd) -> None:
        self.ends[ran.cell.key] = end
        self._running.remove(ran)
        text = f" ({end.cases_text})" if end.cases_text else ""
        self.tell(f"{ran.cell.key}: {end.ending.value} in {end.seconds:.0f} s{text}")
        if end.place is not None and end.blames_its_place:
            self._aside[ran.cell.board].add(end.place)
            self.tell(f"{end.place} is set aside for this night, while there is another board of its kind")

    def _stop(self) -> None:
        """End what is running; what has ended by itself meanwhile counts as it ended."""
        self._look()
        for each in self._running:
            each.stop("ended with the night")
        until_s = time.monotonic() + END_LIMIT_S
        while self._running and time.monotonic() < until_s:
            self._look()
            time.sleep(_LOOK_PERIOD_S)
        self._keep()

    def _keep(self) -> None:
        write_state(self.folder, self.plan, self.ends, self.origin)
