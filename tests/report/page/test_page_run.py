"""Runs as the page takes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from perfsuite.records.observation import NO_OBSERVATION, write_observation
from perfsuite.records.run_file import RunFile
from perfsuite.records.run_origin import BoardName
from perfsuite.report.page.page_run import PageRun, read_page_run, run_lines
from perfsuite.report.run_writer import write_run
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

from .conftest import page_run

REPORTED = synthetic_run(n_cases=60)


def page_runs(*runs: RunFile) -> list[PageRun]:
    return [page_run(run, path=Path(f"{n}/run.json")) for n, run in enumerate(runs)]


def test_what_makes_runs_incomparable_is_named() -> None:
    """Another device, workload or field of a fingerprint, and cases that are missing, are differences."""
    other = replace(
        REPORTED,
        device="board",
        workload="b/c",
        fingerprints={"llama": {**REPORTED.fingerprints["llama"], "threads": "4"}},
        judgements=REPORTED.judgements[:-2],
    )
    _, (_, _, facts) = run_lines(page_runs(REPORTED, other))
    assert facts["Differs in"] == "device, workload, llama threads, lacks 2 of the cases"


def test_another_board_of_the_kind_is_named() -> None:
    """Boards that were reached over a link are told apart, and machines of a kind are not."""
    origin = REPORTED.origin
    named = [BoardName(identity=name, hostname="shelf", is_linked=True) for name in "ab"]
    boards = [replace(REPORTED, origin=replace(origin, board=each)) for each in named]
    (_, _, first), (_, _, second) = run_lines(page_runs(*boards))
    assert (first["Device"], second["Device"]) == ("host, board a (shelf)", "host, board b (shelf)")
    assert second["Differs in"] == "board"
    machines = [replace(REPORTED, origin=replace(origin, board=replace(each, is_linked=False))) for each in named]
    _, (_, _, facts) = run_lines(page_runs(*machines))
    assert facts["Differs in"] == "nothing but its times"


RUN = synthetic_run(n_cases=20)


def test_a_run_comes_with_what_it_saw(tmp_path: Path) -> None:
    """The folder and its run.json name the same run; without observation.json it saw nothing."""
    path = write_run(RUN, tmp_path)
    assert read_page_run(tmp_path) == read_page_run(path)
    assert read_page_run(path).observation == NO_OBSERVATION
    write_observation(synthetic_observation(RUN), tmp_path)
    found = read_page_run(tmp_path)
    assert (found.run, found.observation, found.path) == (RUN, synthetic_observation(RUN), path)
