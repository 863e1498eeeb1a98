"""The folder of a run on a board: the program there makes it, and what the run leaves in it is brought here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import LinkError, MeasurementError
from perfsuite.measure.board.frames import understood
from perfsuite.measure.board.run_folder import RUN_FOLDER, file_within, placed_in, within_limit

#: Asks the program there: kind and arguments.
Ask = Callable[[str, Mapping[str, Any]], Any]

#: Most of a file that crosses the link at once.
PIECE_BYTES = 4 << 20


class ProgramFiles:
    """The folder of the last run there, if that had one."""

    def __init__(self, ask: Ask) -> None:
        """Ask the program for everything."""
        self._ask = ask
        self._is_there = False
        #: Where files lie that the desk reads while a run goes on.
        self._read = ExitStack()

    @contextmanager
    def folder(self, *values: Any, stays: bool) -> Iterator[Path]:
        """Give the folder of a run, where one of the values names it; `RUN_FOLDER` itself where there is none.

        The last run's is gone then. One that stays is there until the next run.
        """
        self._remove()
        if not stays and all(placed_in(Path("/"), each) == each for each in values):
            yield RUN_FOLDER
            return
        folder = understood("run_folder", Path, self._ask("run_folder", {"is_wanted": True}))
        self._is_there = True
        yield folder
        if not stays:
            self._remove()

    def bring(self, files: Path) -> None:
        """Get all that a run has left into a folder here; raises as `within_limit`."""
        left = understood("left_files", lambda plain: within_limit(_named(plain)), self._ask("left_files", {}))
        for name, n_bytes in left:
            path = file_within(files, name)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if self._copy(name, path) != n_bytes:
                    raise LinkError(f"{name} is not what it was announced as")
            except OSError as error:
                raise MeasurementError(f"{path}: cannot be written ({error.strerror})") from None

    def read(self, path: Path) -> Path:
        """Get a file of the run that goes on, as it is now; raises as `within_limit`. It is here until the next run."""
        here = self._read.enter_context(work_folder()) / path.name
        self._copy(path.name, here)
        return here

    def _copy(self, name: str, to: Path) -> int:
        n_bytes = 0
        with to.open("wb") as file:
            while piece := self._piece(name, n_bytes):
                n_bytes += file.write(piece)
                within_limit([(name, n_bytes)])
        return n_bytes

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
