"""Runs as the page takes them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.records.observation import NO_OBSERVATION, write_observation
from perfsuite.records.run_origin import BoardName
from perfsuite.report.page.page_run import PageRun, other_runs, read_page_run, run_lines
from perfsuite.report.run_file import RunFile, write_run
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

from .conftest import page_run

REPORTED = synthetic_run(n_cases=60)


def page_runs(*runs: RunFile) -> list[PageRun]:
    return [page_run(run, path=Path(f"{n}/run.json")) for n, run in enumerate(runs)]


def test_each_run_has_a_line() -> None:
    """The reported run comes first, then the others as they were named, with their cases by id; one alone has none."""
    lines = run_lines(page_runs(REPORTED, synthetic_run(n_cases=60, seed=1), REPORTED))
    assert [line.label for line in lines] == ["this run", "run 2", "run 3"]
    assert [line.facts["File"] for line in lines] == ["0/run.json", "1/run.json", "2/run.json"]
    assert lines[0].verdict.startswith("5 cases regressed")
    assert "Differs in" not in lines[0].facts
    assert run_lines(page_runs(REPORTED)) == ()
    assert other_runs(page_runs(REPORTED)) == ()
    (other,) = other_runs(page_runs(REPORTED, synthetic_run(n_cases=60, seed=1)))
    assert other.cases.keys() == {each.case_id for each in REPORTED.judgements}


def test_what_makes_runs_incomparable_is_named() -> None:
    """Another device, workload or field of a fingerprint, and cases that are missing, are differences."""
    other = replace(
        REPORTED,
        device="board",
        workload="b/c",
        fingerprints={"llama": {**REPORTED.fingerprints["llama"], "threads": "4"}},
        judgements=REPORTED.judgements[:-2],
    )
    found = run_lines(page_runs(REPORTED, other))[1].facts["Differs in"]
    assert found == "device, workload, llama threads, lacks 2 of the cases"


def test_another_board_of_the_kind_is_named() -> None:
    """Boards that were reached over a link are told apart, and machines of a kind are not."""
    origin = REPORTED.origin
    named = [BoardName(identity=name, hostname="shelf", is_linked=True) for name in "ab"]
    boards = [replace(REPORTED, origin=replace(origin, board=each)) for each in named]
    first, second = run_lines(page_runs(*boards))
    assert (first.facts["Device"], second.facts["Device"]) == ("host, board a (shelf)", "host, board b (shelf)")
    assert second.facts["Differs in"] == "board"
    machines = [replace(REPORTED, origin=replace(origin, board=replace(each, is_linked=False))) for each in named]
    assert run_lines(page_runs(*machines))[1].facts["Differs in"] == "nothing but its times"


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
