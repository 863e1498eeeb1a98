"""Runs as the page takes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.observation import NO_OBSERVATION
from perfsuite.records.observation_file import write_observation
from perfsuite.report.page.page_run import read_page_run
from perfsuite.report.run_file import write_run
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

RUN = synthetic_run(n_cases=20)


def test_a_run_comes_with_what_it_saw(tmp_path: Path) -> None:
    """The folder and its run.json name the same run; without observation.json it saw nothing."""
    path = write_run(RUN, tmp_path)
    assert read_page_run(tmp_path) == read_page_run(path)
    assert read_page_run(path).observation == NO_OBSERVATION
    write_observation(synthetic_observation(RUN), tmp_path)
    found = read_page_run(tmp_path)
    assert (found.run, found.observation, found.path) == (RUN, synthetic_observation(RUN), path)


def test_of_a_folder_of_runs_the_newest_is_named(tmp_path: Path) -> None:
    """Who names the folder of all runs is told which of them is the newest."""
    for number, name in enumerate(["b", "a"]):
        path = write_run(RUN, tmp_path / name)
        os.utime(path, (number, number))
    with pytest.raises(PerfsuiteError, match=rf"is a folder of runs, expected one run; the newest is {tmp_path}/a$"):
        read_page_run(tmp_path)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    """An empty folder holds no run, and a path that is not there cannot be read."""
    with pytest.raises(PerfsuiteError, match=r"holds no run\.json"):
        read_page_run(tmp_path)
    with pytest.raises(PerfsuiteError, match="cannot be read"):
        read_page_run(tmp_path / "none")
