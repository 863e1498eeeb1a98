"""What a night measures: boards, and the cells of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfsuite.errors import PerfsuiteError, meant

#: What names of folders are made of.
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")

#: Names in the folder of a night that no board can have.
TAKEN_NAMES = frozenset({"night.json", "summary.md", "junit.xml", "latest"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run of pytest: a model in a scenario on a board."""

    board: str
    device: str
    model: str
    scenario: str
    #: Arguments of pytest beside the device, the model, the scenario and where to write.
    arguments: tuple[str, ...] = ()
    #: Cells of one lane are on one device, or share the boards of one farm: the device and how it is reached.
    lane: str
    #: Whether a board of a farm is borrowed.
    is_of_farm: bool = False

    @property
    def key(self) -> str:
        """The cell's name, which is also its folder below that of the night: ``BOARD/MODEL-SCENARIO``."""
        return f"{self.board}/{_PLAIN.sub('_', f'{self.model}-{self.scenario}').strip('.')}"

    @property
    def words(self) -> tuple[str, ...]:
        """What pytest is asked for, wherever it writes."""
        cell = (f"--perf-device={self.device}", f"--perf-model={self.model}", f"--perf-scenario={self.scenario}")
        return (*cell, *self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightPlan:
    """The cells of a night, and how long they may take."""

    cells: tuple[Cell, ...]
    #: By board: how many of its cells are run at the same time, each on a board of its own of a farm.
    at_once: dict[str, int]
    #: Without the time that others had the board.
    cell_limit_s: float
    night_limit_s: float
    #: Longest wait of a cell for a board that others have.
    wait_s: float

    def of_boards(self, names: Sequence[str]) -> NightPlan:
        """Return the part of the plan that is of these boards; raises `PerfsuiteError`: it has none of that name."""
        for name in names:
            if name not in self.at_once:
                known = ", ".join(self.at_once) + meant(name, self.at_once)
                raise PerfsuiteError(f"--board={name}: no board of the plan; it has {known}")
        return replace(self, cells=tuple(cell for cell in self.cells if cell.board in names))
