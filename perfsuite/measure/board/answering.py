"""What an agent is asked over a link, and what it answers; arguments and answers are what MessagePack holds.

A request is a frame ``{"kind": K, "id": N, "arguments": {...}}``; its answer ``{"kind": "answer", "id": N,
"value": V}`` or ``{"kind": "error", "id": N, "error": {"class": C, "text": one line}}``. The path of `RUN_FOLDER`
stands for a folder that is made for the run; the agent puts that one's path wherever it is in plan and environment.

=====================  ==========================================================  =====================================
kind                   arguments                                                   value
=====================  ==========================================================  =====================================
``run``                plan (as `dump_plan` wrote it), extra_environment;          the worker's payload, what was seen
                       may have keeps_files (bool), beside (a `Beside`),           beside it, and where files are kept
                       is_heard (bool), limit_s                                    ``files``: name and bytes of each
``file``               name (of those of the last run), offset, most_bytes         bytes from there, b"" at its end
``run_in_turns``       plans (two), n_turns, leader, extra_environment,            the two payloads
                       own_environments (two); may have is_heard
``instrument``         name, and what `instruments` says                           as it says
``start_shapes``       plan, environment, limit_s                                  session (a number), description
``ask_shapes``         session, kind, case_ids, asked                              answer (a line), or failure (a text),
                                                                                   or crash (case id, how); is_open
``end_shapes``         session                                                     None
``independent_rates``  n_threads, platform                                         rates
``set_governor``       governor, None restores                                     None
``set_load``           n_processes                                                 None
=====================  ==========================================================  =====================================

While a run goes on that is heard, each of its live records is a frame ``{"kind": "live", "id": N, "delivery": D}``,
D as `perfsuite.measure.live.Delivery` writes it. The files of a run are there until the next one, or the end of the
agent; they cross the link piece by piece, so that no message is longer than a piece, however long a log is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError
from perfsuite.measure.board.beside import Beside
from perfsuite.measure.board.instruments import INSTRUMENT, answered_instrument
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.protocol import Hear
from perfsuite.measure.board.run_folder import file_within, left_files
from perfsuite.measure.engine import Engine
from perfsuite.measure.plan import WORKER_LIMIT_S, TurnsPlan, load_plan

if TYPE_CHECKING:
    from perfsuite.measure.live import Delivery
    from perfsuite.measure.shapes.kept_sessions import KeptSessions

#: Arguments and values are what msgpack holds.
Arguments = Mapping[str, Any]

#: Where an answer to `run` has the names and sizes of the files that the run left.
FILES = "files"

#: Most of a file that crosses the link at once.
PIECE_BYTES = 4 << 20


class Answering:
    """What is kept from one request to the next: the files of the last run, and processes that measure shapes."""

    def __init__(self, board: LocalBoard, tell: Callable[[Mapping[str, Any]], None]) -> None:
        """Answer for a board; `tell` sends a message that answers nothing, from whatever thread."""
        self._board, self._tell = board, tell
        self._last_run = ExitStack()
        self._files: Path | None = None
        self._shapes: KeptSessions | None = None

    def answered(self, request: Mapping[str, Any]) -> Any:
        """Do what a request asks for, and return its answer; a `PerfsuiteError` is one, too."""
        kind, asked = request["kind"], request["arguments"]
        if kind not in _ANSWERS:
            raise MeasurementError(f"the agent was asked for {kind!r}; known are {', '.join(_ANSWERS)}")
        return _ANSWERS[kind](self, {**asked, "id": request["id"]})

    def close(self) -> None:
        """End the processes, and remove the files."""
        if self._shapes is not None:
            self._shapes.close()
        self._last_run.close()

    def run(self, asked: Arguments) -> dict[str, Any]:
        """Run a plan."""
        self._last_run.close()
        self._files = None
        if asked.get("keeps_files"):
            self._files = self._last_run.enter_context(work_folder())
        beside = asked.get("beside")
        payload = self._board.run(
            load_plan(asked["plan"]),
            extra_environment=asked["extra_environment"],
            files=self._files,
            beside=Beside.from_plain(beside) if beside else None,
            hear=self._hear(asked),
            limit_s=asked.get("limit_s", WORKER_LIMIT_S),
        )
        return payload if self._files is None else {**payload, FILES: [*map(list, left_files(self._files))]}

    def file(self, asked: Arguments) -> bytes:
        """Return a piece of one of the last run's files."""
        if self._files is None:
            raise MeasurementError("the files of the run are gone; run again")
        with file_within(self._files, asked["name"]).open("rb") as file:
            file.seek(asked["offset"])
            return file.read(min(asked["most_bytes"], PIECE_BYTES))

    def run_in_turns(self, asked: Arguments) -> list[dict[str, Any]]:
        """Let two plans take turns."""
        first, second = (_turns_plan(each) for each in asked["plans"])
        own_first, own_second = asked["own_environments"]
        other = {name: asked[name] for name in ("n_turns", "leader", "extra_environment")}
        own = (own_first, own_second)
        limit_s = asked.get("limit_s", WORKER_LIMIT_S)
        return list(
            self._board.run_in_turns(
                (first, second), own_environments=own, hear=self._hear(asked), limit_s=limit_s, **other
            )
        )

    @property
    def shapes(self) -> KeptSessions:
        """The processes that measure shapes."""
        if self._shapes is None:
            from perfsuite.measure.shapes.kept_sessions import KeptSessions  # brings NumPy

            self._shapes = KeptSessions(self._board.start_shapes)
        return self._shapes

    def independent_rates(self, asked: Arguments) -> list[dict[str, Any]]:
        """Measure the board by other programs."""
        rates = self._board.independent_rates(asked["n_threads"], asked["platform"], self._note)
        return [rate.to_plain() for rate in rates]

    def _note(self, text: str) -> None:
        self._tell({"kind": "note", "text": text})

    def _hear(self, asked: Arguments) -> Hear | None:
        """Return what sends live records to the desk, where it wants them."""
        if not asked.get("is_heard"):
            return None

        def hear(delivery: Delivery) -> None:
            self._tell({"kind": "live", "id": asked["id"], "delivery": delivery.to_plain()})

        return hear


def _turns_plan(content: bytes) -> TurnsPlan:
    plan = load_plan(content)
    if not isinstance(plan, TurnsPlan):
        raise MeasurementError(f"turns were asked for with a {type(plan).__name__}")
    return plan


def _put_weights(board: LocalBoard, asked: Arguments) -> dict[str, Any]:
    digest = asked["digest"]
    return {"path": str(board.put_path(digest)), "is_there": board.is_put(digest)}


def _find_engine(board: LocalBoard, asked: Arguments) -> dict[str, Any]:
    named = asked["library_dir"]
    return board.find_engine(None if named is None else Path(named)).to_plain()


def _keep(board: LocalBoard, asked: Arguments) -> str:
    plain = asked["engine"]
    return board.keep(None if plain is None else Engine.from_plain(plain), asked["version"])


def _kept_folder(board: LocalBoard, asked: Arguments) -> str | None:
    folder = board.kept_folder(asked["engine_id"])
    return None if folder is None else str(folder)


def _of_board(answer: Callable[[LocalBoard, Arguments], Any]) -> Callable[[Answering, Arguments], Any]:
    return lambda answering, asked: answer(answering._board, asked)


_ANSWERS: Mapping[str, Callable[[Answering, Arguments], Any]] = {
    "facts": _of_board(lambda board, _: board.facts().to_plain()),
    "held": _of_board(lambda board, _: board.held().to_plain()),
    "covariates": _of_board(lambda board, _: dict(board.covariates())),
    "competition": _of_board(lambda board, _: board.competition().to_plain()),
    "run": Answering.run,
    "file": Answering.file,
    "run_in_turns": Answering.run_in_turns,
    "named_weights": _of_board(lambda board, asked: str(board.place_named_weights(asked["name"], asked["identity"]))),
    "put_weights": _of_board(_put_weights),
    "find_engine": _of_board(_find_engine),
    "keep": _of_board(_keep),
    "kept_folder": _of_board(_kept_folder),
    INSTRUMENT: _of_board(lambda board, asked: answered_instrument(board.instruments, asked)),
    "start_shapes": lambda answering, asked: answering.shapes.start(asked),
    "ask_shapes": lambda answering, asked: answering.shapes.ask(asked),
    "end_shapes": lambda answering, asked: answering.shapes.end(asked),
    "independent_rates": Answering.independent_rates,
    "set_governor": _of_board(lambda board, asked: board.set_governor(asked["governor"])),
    "set_load": _of_board(lambda board, asked: board.set_load(asked["n_processes"])),
}
