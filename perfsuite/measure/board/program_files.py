"""The folder of a run on a board without Python: the program there makes it, and the desk says where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from perfsuite.device.work_folder import work_folder
from perfsuite.measure.board.answering import FILES, PIECE_BYTES
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.run_folder import RUN_FOLDER, placed_in, within_limit
from perfsuite.measure.plan import dump_plan, load_plan

#: Asks the program there: kind and arguments.
Ask = Callable[[str, Mapping[str, Any]], Any]


class ProgramFiles:
    """The folder of the last run there, if that had one."""

    def __init__(self, ask: Ask) -> None:
        """Ask the program for everything."""
        self._ask = ask
        self._is_there = False
        #: Where files lie that the desk reads while a run goes on.
        self._read = ExitStack()

    @contextmanager
    def placed(self, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Give what a run is asked for, with the path of its own folder wherever it names one; the last run's is gone.

        A folder whose files are wanted stays until the next run.
        """
        self._remove()
        if not asked.get("keeps_files") and not _names_folder(asked):
            yield dict(asked)
            return
        folder = understood("run_folder", Path, self._ask("run_folder", {"is_wanted": True}))
        self._is_there = True
        yield {name: _placed(folder, name, value) for name, value in asked.items()}
        if not asked.get("keeps_files"):
            self._remove()

    def left(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a run has left, by `FILES`, where that is wanted; raises as `within_limit`."""
        if not asked.get("keeps_files"):
            return {}
        told = self._ask("left_files", {})
        return {FILES: [*map(list, understood("left_files", lambda plain: within_limit(_named(plain)), told))]}

    def read(self, path: Path) -> Path:
        """Get a file of the run that goes on, as it is now; raises as `within_limit`. It is here until the next run."""
        here = self._read.enter_context(work_folder()) / path.name
        with here.open("wb") as file:
            n_bytes = 0
            while piece := self._piece(path.name, n_bytes):
                n_bytes += file.write(piece)
                within_limit([(path.name, n_bytes)])
        return here

    def _piece(self, name: str, offset: int) -> bytes:
        asked = {"name": name, "offset": offset, "most_bytes": PIECE_BYTES}
        return understood("file", bytes, self._ask("file", asked))

    def close(self) -> None:
        """Remove what was read."""
        self._read.close()

    def _remove(self) -> None:
        self._read.close()
        if self._is_there:
            self._is_there = False
            self._ask("run_folder", {"is_wanted": False})


def _named(plain: Any) -> Iterator[tuple[str, int]]:
    return ((str(name), int(n_bytes)) for name, n_bytes in plain)


def _names_folder(asked: Mapping[str, Any]) -> bool:
    return any(_placed(Path("/"), name, value) != value for name, value in asked.items())


def _placed(folder: Path, name: str, value: Any) -> Any:
    """Return an argument with the folder in the place of `RUN_FOLDER`: plans are packed, environments plain."""
    if name == "plan":
        return dump_plan(placed_in(folder, load_plan(value))) if str(RUN_FOLDER).encode() in value else value
    if name == "plans":
        return [_placed(folder, "plan", each) for each in value]
    if name == "own_environments":
        return [placed_in(folder, each) for each in value]
    return placed_in(folder, value) if name == "extra_environment" else value
