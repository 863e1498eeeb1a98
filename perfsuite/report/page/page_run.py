"""A run as the page takes it: its record, what it saw, and where both lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.records.observation import Observation
from perfsuite.records.observation_file import read_observation
from perfsuite.records.run_json import RUN_NAME
from perfsuite.report.run_file import RunFile, read_run_file, run_path


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRun:
    """One of the runs that a page is about."""

    run: RunFile
    observation: Observation
    #: Its ``run.json``.
    path: Path


def read_page_run(named: Path) -> PageRun:
    """Read a run, named by its folder or its ``run.json``, with what lies beside it.

    Raises PerfsuiteError where there is no run, or it cannot be used; of a folder of runs the message names the newest.
    """
    _refuse_folder_of_runs(named)
    path = run_path(named)
    return PageRun(run=read_run_file(path), observation=read_observation(path.parent), path=path)


def _refuse_folder_of_runs(named: Path) -> None:
    if not named.is_dir() or (named / RUN_NAME).exists():
        return
    runs = sorted(named.glob(f"*/{RUN_NAME}"), key=lambda path: (path.stat().st_mtime, path))
    if runs:
        raise PerfsuiteError(f"{named}: is a folder of runs, expected one run; the newest is {runs[-1].parent}")
    raise PerfsuiteError(f"{named}: holds no {RUN_NAME}; name the folder or the {RUN_NAME} of a run")
