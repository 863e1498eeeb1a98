"""What must not be written over: the files of the runs that a command reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.records.observation import OBSERVATION_NAME
from perfsuite.report.visible import terminal_text


def refuse_own_files(output: Path, run_paths: Iterable[Path]) -> None:
    """Raise a PerfsuiteError where an output is one of the files of the runs at `run_paths`."""
    told = f"--output={terminal_text(str(output))}"
    kept = {file.resolve() for path in run_paths for file in (path, path.parent / OBSERVATION_NAME)}
    if output.resolve() in kept:
        raise PerfsuiteError(f"{told}: is a file of the run itself; name another")
