"""Runs beside the reported one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from perfsuite.records.run_origin import BoardName
from perfsuite.report.page.other_runs import other_runs, run_lines
from perfsuite.report.page.page_run import PageRun
from perfsuite.report.run_file import RunFile
from perfsuite.testing.run_files import synthetic_run

from .conftest import page_run

REPORTED = synthetic_run(n_cases=60)


def page_runs(*runs: RunFile) -> list[PageRun]:
    """Runs as the page takes them."""
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
