"""What the agent does for each request of the desk, with the board that a local run has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import TurnsPlan, load_plan

#: Arguments and values are what msgpack holds.
Arguments = Mapping[str, Any]


def answered(board: LocalBoard, kind: str, arguments: Arguments) -> Any:
    """Do what a request asks for, and return its answer; a `PerfsuiteError` is one, too."""
    if kind not in _ANSWERS:
        raise MeasurementError(f"the agent was asked for {kind!r}; known are {', '.join(_ANSWERS)}")
    return _ANSWERS[kind](board, arguments)


def _run_in_turns(board: LocalBoard, arguments: Arguments) -> list[dict[str, Any]]:
    first, second = (_turns_plan(text) for text in arguments["plans"])
    own_first, own_second = arguments["own_environments"]
    other = {name: arguments[name] for name in ("n_turns", "leader", "extra_environment")}
    return list(board.run_in_turns((first, second), own_environments=(own_first, own_second), **other))


def _turns_plan(text: str) -> TurnsPlan:
    plan = load_plan(text)
    if not isinstance(plan, TurnsPlan):
        raise MeasurementError(f"turns were asked for with a {type(plan).__name__}")
    return plan


def _put_weights(board: LocalBoard, arguments: Arguments) -> dict[str, Any]:
    digest = arguments["digest"]
    return {"path": str(board.put_path(digest)), "is_there": board.is_put(digest)}


def _find_engine(board: LocalBoard, arguments: Arguments) -> dict[str, Any]:
    named = arguments["library_dir"]
    return board.find_engine(None if named is None else Path(named)).to_plain()


def _keep(board: LocalBoard, arguments: Arguments) -> str:
    plain = arguments["engine"]
    return board.keep(None if plain is None else Engine.from_plain(plain), arguments["version"])


def _kept_folder(board: LocalBoard, arguments: Arguments) -> str | None:
    folder = board.kept_folder(arguments["engine_id"])
    return None if folder is None else str(folder)


_ANSWERS: dict[str, Callable[[LocalBoard, Arguments], Any]] = {
    "facts": lambda board, _: board.facts().to_plain(),
    "held": lambda board, _: board.held().to_plain(),
    "covariates": lambda board, _: dict(board.covariates()),
    "competition": lambda board, _: board.competition().to_plain(),
    "run": lambda board, asked: board.run(load_plan(asked["plan"]), extra_environment=asked["extra_environment"]),
    "run_in_turns": _run_in_turns,
    "named_weights": lambda board, asked: str(board.place_named_weights(asked["name"], asked["identity"])),
    "put_weights": _put_weights,
    "find_engine": _find_engine,
    "keep": _keep,
    "kept_folder": _kept_folder,
}
