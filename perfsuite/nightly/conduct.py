"""Runs the cells of a night: boards side by side, the cells of a board one after the other."""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from pathlib import Path

from perfsuite.nightly.cell_end import CellEnd
from perfsuite.nightly.night_state import NightOrigin, write_state
from perfsuite.nightly.plan import Cell, NightPlan
from perfsuite.nightly.running_cell import END_LIMIT_S, PYTEST, RunningCell

Tell = Callable[[str], None]

_LOOK_PERIOD_S = 0.1


class Night:
    """A night that is under way."""

    def __init__(
        self,
        plan: NightPlan,
        folder: Path,
        ends: dict[str, CellEnd],
        *,
        lock: int,
        tell: Tell,
        origin: NightOrigin,
        program: Sequence[str] = PYTEST,
    ) -> None:
        #: By cell: how it ended, as far as the night has come.
        self.ends = ends
        self._plan = plan
        self._folder = folder
        self._lock = lock
        self._tell = tell
        self._origin = origin
        self._program = program
        self._running: list[RunningCell] = []
        #: By board of the plan: the places of its farm on which a run broke.
        self._aside: defaultdict[str, set[str]] = defaultdict(set)
        self._deadline_s = time.monotonic() + plan.night_limit_s

    def run(self) -> None:
        """Run what is not finished, and what broke once more at the end; keep each end as it comes.

        However this is left, by an exception or Ctrl-C too, no cell is running afterwards.
        """
        todo = self._unfinished()
        self._round(todo)
        begun = {cell.key for cell in todo if cell.key in self.ends}
        if again := [cell for cell in self._unfinished() if cell.key in begun]:
            self._tell(f"{len(again)} of {len(self._plan.cells)} cells broke, and are tried again")
            self._round(again)

    def _unfinished(self) -> list[Cell]:
        return [cell for cell in self._plan.cells if not (end := self.ends.get(cell.key)) or not end.is_finished]

    def _round(self, cells: Sequence[Cell]) -> None:
        waiting = _by_lane(cells)
        try:
            while self._running or waiting:
                if waiting and time.monotonic() > self._deadline_s:
                    n_left = sum(map(len, waiting.values()))
                    self._tell(f"the night's limit has passed; {n_left} cells are left for --resume")
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
            while cells and n_running[lane] < (self._plan.at_once[cells[0].board] if cells[0].is_of_farm else 1):
                n_running[lane] += 1
                cell = cells.popleft()
                self._tell(f"{cell.key}: begins")
                self._running.append(self._begun(cell))
            if not cells:
                del waiting[lane]

    def _begun(self, cell: Cell) -> RunningCell:
        aside = ",".join(sorted(self._aside[cell.board]))
        return RunningCell(
            cell,
            self._folder,
            self._plan,
            program=self._program,
            lock=self._lock,
            deadline_s=self._deadline_s,
            more=(f"--perf-farm-avoid={aside}",) if aside else (),
        )

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
        self._tell(f"{ran.cell.key}: {_end_text(end)}")
        if end.place is not None and end.blames_its_place:
            self._aside[ran.cell.board].add(end.place)
            self._tell(f"{end.place} is set aside for this night, while there is another board of its kind")

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
        write_state(self._folder, self._plan, self.ends, self._origin)


def _by_lane(cells: Sequence[Cell]) -> dict[str, deque[Cell]]:
    lanes: defaultdict[str, deque[Cell]] = defaultdict(deque)
    for cell in cells:
        lanes[cell.lane].append(cell)
    return dict(lanes)


def _end_text(end: CellEnd) -> str:
    counted = ", ".join(f"{count} {outcome}" for outcome, count in end.n_cases.items())
    told = "; ".join(filter(None, (counted, end.why)))
    return f"{end.ending.value} in {end.seconds:.0f} s{f' ({told})' if told else ''}"
