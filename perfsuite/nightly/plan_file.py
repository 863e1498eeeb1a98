"""Reads a night's plan from TOML; every mistake is one line with the place, the value and what is accepted."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from perfsuite.device.farm.request import farm_request
from perfsuite.device.profile import Profile, find_profile
from perfsuite.device.waits import length_s
from perfsuite.errors import PerfsuiteError
from perfsuite.nightly import plan_checks
from perfsuite.nightly.plan import TAKEN_NAMES, Cell, NightPlan
from perfsuite.workload.scenario import find_scenario

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The schema that is read.
SCHEMA = 1

_KEYS = frozenset(
    {"schema", "models", "scenarios", "arguments", "cell_limit", "night_limit", "wait", "history", "board"}
)
_BOARD_KEYS = frozenset({"name", "device", "farm", "at_once", "models", "scenarios", "arguments"})

_MOST_AT_ONCE = 64
_LONGEST_NAME = 100
_LONGEST_S = 30 * 86400.0


def read_plan(path: Path) -> NightPlan:
    """Read a plan; a folder of the history is relative to the plan's own folder.

    Raises
    ------
    PerfsuiteError
        The file cannot be read or is no TOML, a field is missing, unknown or of another type, a device or a scenario
        is unknown, or a cell occurs twice.
    """
    if path.exists() and not path.is_file():
        raise PerfsuiteError(f"{path}: is no file; name the plan of a night")
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PerfsuiteError(f"{path}: cannot be read ({error.strerror}); name the plan of a night") from error
    except (ValueError, RecursionError) as error:
        raise PerfsuiteError(f"{path}: is no TOML ({error})") from error
    return _Plan(path, plain).read()


class _Plan:
    """A file's content with its name, for messages."""

    def __init__(self, path: Path, plain: Mapping[str, Any]) -> None:
        self._path = path
        self._plain = plain

    def read(self) -> NightPlan:
        """Return the plan."""
        self._allow(self._plain, _KEYS, "")
        if type(self._plain.get("schema")) is not int or self._plain["schema"] != SCHEMA:
            self._reject("schema", self._plain.get("schema"), str(SCHEMA))
        boards = self._boards()
        cells = tuple(cell for board in boards for cell in self._cells(board))
        if repeated := [key for key in (cell.key for cell in cells) if [c.key for c in cells].count(key) > 1]:
            raise PerfsuiteError(f"{self._path}: the cell {repeated[0]} occurs twice; give one of its boards a name")
        return NightPlan(
            cells=cells,
            at_once={self._name(board): self._at_once(board) for board in boards},
            wait_s=self._wait_s(),
            cell_limit_s=self._time("cell_limit", "1h"),
            night_limit_s=self._time("night_limit", "12h"),
        )

    def _boards(self) -> list[Mapping[str, Any]]:
        boards = self._plain.get("board")
        if not isinstance(boards, list) or not boards or not all(isinstance(board, dict) for board in boards):
            self._reject("board", boards, "one table [[board]] for each board")
        for board in boards:
            self._allow(board, _BOARD_KEYS, "board.")
        return boards

    def _cells(self, board: Mapping[str, Any]) -> Iterator[Cell]:
        profile, arguments = self._profile(board), self._arguments(board)
        is_of_farm = bool(board.get("farm"))
        if is_of_farm and profile.reach.way != "ssh":
            how = "this machine" if profile.is_local else f"reached by {profile.reach.way}"
            self._reject("board.device", profile.name, f"a device that is reached by ssh with a farm; it is {how}")
        lane = f"farm {self._name(board)}" if is_of_farm else plan_checks.lane(profile)
        for model in self._texts(board, "models") or self._missing("models"):
            self._check_model(model)
            for scenario in self._texts(board, "scenarios") or self._missing("scenarios"):
                find_scenario(scenario)
                yield Cell(
                    board=self._name(board),
                    device=profile.name,
                    model=model,
                    scenario=scenario,
                    arguments=arguments,
                    lane=lane,
                    is_of_farm=is_of_farm,
                )

    def _check_model(self, model: str) -> None:
        try:
            plan_checks.refuse_unknown_model(model)
        except PerfsuiteError as error:
            raise PerfsuiteError(f"{self._path}: models: {error}") from error

    def _arguments(self, board: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what pytest is told beside the cell: the farm, the history, the plan's and the board's own words."""
        more = self._texts(board, "arguments") if "arguments" in board else ()
        own = (*self._texts(self._plain, "arguments"), *more)
        for word in own:
            if not word.startswith("-") or plan_checks.is_taken(word):
                self._reject("arguments", word, "options of pytest, one word each, but for those that the night sets")
        history = self._plain.get("history")
        if history is not None and not isinstance(history, str):
            self._reject("history", history, "a folder")
        kept = () if history is None else (f"--perf-history={(self._path.parent / history).absolute()}",)
        return (*self._farm(board), f"--perf-wait={self._wait_s():.10g}s", *kept, *own)

    def _farm(self, board: Mapping[str, Any]) -> tuple[str, ...]:
        farm = board.get("farm", False)
        wait = f"--farm-wait={self._wait_s():.10g}s"
        if isinstance(farm, str) and farm:
            return (f"--farm={farm_request(farm).coordinator}", wait)
        if not isinstance(farm, bool):
            self._reject("board.farm", farm, "true, or the coordinator as HOST:PORT")
        return ("--farm", wait) if farm else ()

    def _name(self, board: Mapping[str, Any]) -> str:
        name = board.get("name", board.get("device"))
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            self._reject("board.name", name, "letters, digits, '.', '_' and '-'")
        if len(name) > _LONGEST_NAME or name in TAKEN_NAMES:
            accepted = f"at most {_LONGEST_NAME} characters, and none of {', '.join(sorted(TAKEN_NAMES))}"
            self._reject("board.name", name, accepted)
        return name

    def _profile(self, board: Mapping[str, Any]) -> Profile:
        device = board.get("device")
        if not isinstance(device, str):
            self._reject("board.device", device, "the name of a device; see 'perfsuite devices list'")
        try:
            return find_profile(device)
        except PerfsuiteError as error:
            raise PerfsuiteError(f"{self._path}: board: {error}") from error

    def _at_once(self, board: Mapping[str, Any]) -> int:
        at_once = board.get("at_once", 1)
        if type(at_once) is not int or not 1 <= at_once <= _MOST_AT_ONCE:
            self._reject("board.at_once", at_once, f"1 to {_MOST_AT_ONCE}")
        if at_once > 1 and not board.get("farm"):
            self._reject("board.at_once", at_once, "1 without a farm: one run at a time on a device")
        return at_once

    def _texts(self, table: Mapping[str, Any], name: str) -> tuple[str, ...]:
        """Return the texts of a table, or else those of the whole plan."""
        texts = table.get(name, self._plain.get(name, []))
        if not isinstance(texts, list) or not all(map(_is_text, texts)):
            self._reject(name, texts, "a list of texts")
        return tuple(texts)

    def _wait_s(self) -> float:
        return self._time("wait", "1h")

    def _time(self, name: str, default: str) -> float:
        text = self._plain.get(name, default)
        time_s = length_s(text) if isinstance(text, str) and not text[-1:].isdecimal() else None
        if time_s is None or not 1.0 <= time_s <= _LONGEST_S:
            self._reject(name, text, "a time from 1s to 30 days such as 90s, 45m or 8h")
        return time_s

    def _allow(self, table: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
        if unknown := sorted(table.keys() - keys):
            raise PerfsuiteError(
                f"{self._path}: {where}{unknown[0]} is unknown; accepted are {', '.join(sorted(keys))}"
            )

    def _missing(self, name: str) -> NoReturn:
        raise PerfsuiteError(f"{self._path}: {name} is missing; expected a list, of the plan or of each board")

    def _reject(self, name: str, value: object, accepted: str) -> NoReturn:
        raise PerfsuiteError(f"{self._path}: {name} is {str(value)[:60]!r}, expected {accepted}")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != "" and "\0" not in value
