"""What a night measures, read from TOML; every mistake is one line with the place, the value and what is accepted."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

from msgspec import Meta

from perfsuite.device.farm.request import farm_request, length_s
from perfsuite.device.profile import Profile, find_profile
from perfsuite.errors import PerfsuiteError, meant
from perfsuite.option_table import own_name
from perfsuite.records.codec import Name, read_toml
from perfsuite.records.history_place import history_place
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import is_path, resolve

#: The schema that is read.
SCHEMA = 1

#: What names of folders are made of.
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")

#: Names in the folder of a night that no board can have.
_TAKEN_NAMES = ("junit.xml", "latest", "night.json", "summary.md")
_LONGEST_NAME = 100
_LONGEST_S = 30 * 86400.0

#: What the night itself tells pytest, and what begins so and is the plan's business.
_OWN = (
    *("--perf-device", "--perf-model", "--perf-scenario", "--perf-dir", "--perf-history", "--perf-wait"),
    *("--perf-address", "--perf-farm"),
)
_QUIET = "--perf-wait-quiet"
#: What would run several things at a time on a device, or write the report elsewhere.
_REFUSED = re.compile(r"-n|--dist|--numproc|--tx|--junit-?xml")


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


_Word = Annotated[str, Meta(pattern="^[^\\0]+$", description="a text that is not empty")]
_AtOnce = Annotated[int, Meta(ge=1, le=64, description="1 to 64")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Board:
    device: str
    name: str | None = None
    #: Whether a board of a farm is borrowed, or the farm's coordinator.
    farm: bool | Name = False
    at_once: _AtOnce = 1
    #: None where those of the whole plan hold.
    models: tuple[_Word, ...] | None = None
    scenarios: tuple[_Word, ...] | None = None
    #: Beside those of the whole plan.
    arguments: tuple[_Word, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    models: tuple[_Word, ...] = ()
    scenarios: tuple[_Word, ...] = ()
    arguments: tuple[_Word, ...] = ()
    cell_limit: str = "1h"
    night_limit: str = "12h"
    wait: str = "1h"
    history: str | None = None
    board: tuple[_Board, ...] = ()


def read_plan(path: Path) -> NightPlan:
    """Read a plan; a folder of the history is relative to the plan's own folder.

    Raises `PerfsuiteError` where the file cannot be read or is no TOML, a field is missing, unknown or of another
    type, a device or a scenario is unknown, or a cell occurs twice.
    """
    if path.exists() and not path.is_file():
        raise PerfsuiteError(f"{path}: is not a file; name the plan of a night")
    plan = read_toml(path, _Plan, PerfsuiteError, "name the plan of a night", schema=SCHEMA, is_closed=True)
    if not plan.board:
        raise PerfsuiteError(f"{path}: board is missing, expected one table [[board]] for each board")
    return _Reading(path, plan).night()


def refuse_unknown_model(model: str) -> None:
    """Refuse what pytest would refuse in each cell with a `PerfsuiteError`; a file is looked for, and not read."""
    if not is_path(model):
        resolve(model, cache_dir=Path())
    elif not os.path.isfile(model):  # which, unlike Path's, also knows of names that are too long
        raise PerfsuiteError(f"{model}: there is no such file; a path is from the folder in which the night is begun")


class _Reading:
    """A file's content with its name, for messages."""

    def __init__(self, path: Path, plan: _Plan) -> None:
        self._path = path
        self._plan = plan
        self._wait_s = self._time("wait", plan.wait)
        # of ten thousand boards, most are of the same few profiles and measure the same few models
        self._profile: Callable[[str], Profile] = cache(partial(self._within, "board", find_profile))
        self._check_model = cache(partial(self._within, "models", refuse_unknown_model))

    def night(self) -> NightPlan:
        boards = self._plan.board
        cells = tuple(cell for board in boards for cell in self._cells(board))
        if repeated := [key for key, count in Counter(cell.key for cell in cells).items() if count > 1]:
            raise PerfsuiteError(f"{self._path}: the cell {repeated[0]} occurs twice; give one of its boards a name")
        for board in boards:
            if board.at_once > 1 and not board.farm:
                self._reject("board.at_once", board.at_once, "1 without a farm: one run at a time on a device")
        return NightPlan(
            cells=cells,
            at_once={self._name(board): board.at_once for board in boards},
            wait_s=self._wait_s,
            cell_limit_s=self._time("cell_limit", self._plan.cell_limit),
            night_limit_s=self._time("night_limit", self._plan.night_limit),
        )

    def _cells(self, board: _Board) -> Iterator[Cell]:
        profile, arguments, name = self._profile(board.device), self._arguments(board), self._name(board)
        if board.farm and profile.reach.way != "ssh":
            how = "this machine" if profile.is_local else f"reached by {profile.reach.way}"
            self._reject("board.device", profile.name, f"a device that is reached by ssh with a farm; it is {how}")
        models = self._plan.models if board.models is None else board.models
        scenarios = self._plan.scenarios if board.scenarios is None else board.scenarios
        for key, asked in (("models", models), ("scenarios", scenarios)):
            if not asked:
                raise PerfsuiteError(f"{self._path}: {key} is missing; expected a list, of the plan or of each board")
        for model in models:
            self._check_model(model)
            for scenario in scenarios:
                find_scenario(scenario)
                yield Cell(
                    board=name,
                    device=profile.name,
                    model=model,
                    scenario=scenario,
                    arguments=arguments,
                    lane=f"farm {name}" if board.farm else _lane(profile),
                    is_of_farm=bool(board.farm),
                )

    def _within(self, key: str, find: Callable[[str], Any], name: str) -> Any:
        try:
            return find(name)
        except PerfsuiteError as error:
            raise PerfsuiteError(f"{self._path}: {key}: {error}") from error

    def _arguments(self, board: _Board) -> tuple[str, ...]:
        """Return what pytest is given beside the cell: the farm, the history, the plan's and the board's own words."""
        words = (*self._plan.arguments, *board.arguments)
        for word in words:
            name = own_name(word).split("=")[0]
            is_own = name.startswith(_OWN) and name != _QUIET
            if not word.startswith("-") or is_own or _REFUSED.match(word):
                self._reject("arguments", word, "options of pytest, one word each, except those that the night sets")
        wait, kept, farm = f"{self._wait_s:.10g}s", list[str](), list[str]()
        if self._plan.history is not None:
            place = history_place(self._plan.history, f"{self._path}: history = ")
            kept = [f"--perf-history={(self._path.parent / place).absolute() if isinstance(place, Path) else place}"]
        if board.farm:
            coordinator = f"={farm_request(board.farm).coordinator}" if isinstance(board.farm, str) else ""
            farm = [f"--perf-farm{coordinator}", f"--perf-farm-wait={wait}"]
        return (*farm, f"--perf-wait={wait}", *kept, *words)

    def _name(self, board: _Board) -> str:
        name = board.device if board.name is None else board.name
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            self._reject("board.name", name, "letters, digits, '.', '_' and '-'")
        if len(name) > _LONGEST_NAME or name in _TAKEN_NAMES:
            accepted = f"at most {_LONGEST_NAME} characters, and none of {', '.join(_TAKEN_NAMES)}"
            self._reject("board.name", name, accepted)
        return name

    def _time(self, name: str, text: str) -> float:
        time_s = None if text[-1:].isdecimal() else length_s(text)
        if time_s is None or not 1.0 <= time_s <= _LONGEST_S:
            self._reject(name, text, "a time from 1s to 30 days such as 90s, 45m or 8h")
        return time_s

    def _reject(self, name: str, value: object, accepted: str) -> NoReturn:
        raise PerfsuiteError(f"{self._path}: {name} is {str(value)[:60]!r}, expected {accepted}")


def _lane(profile: Profile) -> str:
    """Return what names the device itself, whatever its profiles are called: a user or the usual port make no other."""
    reach = profile.reach
    if reach.way == "local":
        return "local"
    return f"{reach.way} {reach.address.rpartition('@')[2].lower()} {reach.port or 22}"
