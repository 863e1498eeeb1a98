"""What a night of many cells leaves: no more than a runner shows, made with no more than one run in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from perfsuite.cli.nightly import summary_markdown, write_files
from perfsuite.nightly.cell_end import JUNIT_NAME, CellEnd, Ending
from perfsuite.nightly.plan import Cell, NightPlan
from perfsuite.report.exports.junit import junit_text
from perfsuite.report.exports.markdown import LIMIT_BYTES
from perfsuite.report.run_writer import write_run
from perfsuite.testing.run_files import synthetic_run

PASSED = CellEnd(ending=Ending.MEASURED, exit_code=0, seconds=60, n_cases={"pass": 200})


def night_of(n_cells: int) -> NightPlan:
    """A plan of so many cells on one board."""
    cells = tuple(
        Cell(board="desk", device="host", model="m", scenario=f"p{number}-g4", lane="local")
        for number in range(n_cells)
    )
    return NightPlan(cells=cells, at_once={"desk": 1}, cell_limit_s=1, night_limit_s=1, wait_s=1)


def measured(plan: NightPlan, folder: Path, n_cases: int) -> dict[str, CellEnd]:
    run = synthetic_run(n_cases=n_cases, n_regressed=0)
    one = write_run(run, folder / "one")
    junit = folder / "one" / JUNIT_NAME
    junit.write_text(junit_text([run]))
    for cell in plan.cells:
        (folder / cell.key).mkdir(parents=True)
        for file in (one, junit):
            (folder / cell.key / file.name).hardlink_to(file)
    return {cell.key: PASSED for cell in plan.cells}


def peak_bytes(n_cells: int, folder: Path) -> int:
    """The most memory that the files of a night of so many cells take to write."""
    plan = night_of(n_cells)
    ends = measured(plan, folder, 200)
    tracemalloc.start()
    try:
        write_files(plan, folder, ends)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.long
def test_the_files_of_a_long_night_take_the_memory_of_a_short_one(tmp_path: Path) -> None:
    """A hundred runs of 200 cases take less than four times the memory of four: the text itself is bounded."""
    peak_bytes(2, tmp_path / "warm")
    assert peak_bytes(100, tmp_path / "long") < 4 * peak_bytes(4, tmp_path / "short")


@pytest.mark.long
def test_a_summary_is_what_a_runner_shows(tmp_path: Path) -> None:
    """Of 3,000 cells those are reported first that fail or were not measured; what is left out is counted."""
    plan = night_of(3_000)
    ends = dict.fromkeys([cell.key for cell in plan.cells[:-1]], PASSED)
    ends[plan.cells[2_500].key] = CellEnd(ending=Ending.FAILED, exit_code=1, seconds=1, n_cases={"regressed": 1})
    some = NightPlan(cells=plan.cells[:200], at_once={}, cell_limit_s=1, night_limit_s=1, wait_s=1)
    measured(some, tmp_path, 500)
    text = summary_markdown(plan, tmp_path, ends)
    assert len(text.encode()) <= LIMIT_BYTES
    assert (
        text.index("`p2500-g4` | failed |") < text.index("`p2999-g4` | not run |") < text.index("`p0-g4` | measured |")
    )
    assert "_Left out to save room: 2000 cells; night.json has all._" in text
    assert "runs._" in text


def test_a_short_summary_is_in_the_order_of_the_plan(tmp_path: Path) -> None:
    """Nothing is left out, and nothing is moved to the top."""
    plan = night_of(3)
    failed = CellEnd(ending=Ending.FAILED, exit_code=1, seconds=1, n_cases={"regressed": 1})
    text = summary_markdown(plan, tmp_path, {plan.cells[2].key: failed, plan.cells[0].key: PASSED})
    assert text.index("`p0-g4`") < text.index("`p1-g4`") < text.index("`p2-g4`")
    assert "Left out" not in text
