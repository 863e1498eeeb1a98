"""Runs as the page takes them."""

from __future__ import annotations

from pathlib import Path

from perfsuite.records.observation import NO_OBSERVATION, Observation
from perfsuite.records.run_file import RunFile
from perfsuite.report.page.page_run import PageRun
from perfsuite.testing.run_files import synthetic_observation

PATH = Path("night/run.json")


def page_run(run: RunFile, observation: Observation = NO_OBSERVATION, path: Path = PATH) -> PageRun:
    """A run that saw nothing, or what is given."""
    return PageRun(run=run, observation=observation, path=path)


def observed_run(run: RunFile) -> PageRun:
    """A run with all that it can have seen."""
    return page_run(run, synthetic_observation(run))
