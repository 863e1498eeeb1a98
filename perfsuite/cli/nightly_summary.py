"""The summary of a night in Markdown, such as a job of continuous integration shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from perfsuite.cli.nightly_tables import board_words, ending_words
from perfsuite.errors import PerfsuiteError
from perfsuite.nightly.cell_end import CellEnd
from perfsuite.nightly.plan import Cell, NightPlan
from perfsuite.records.run_json import RUN_NAME
from perfsuite.report.exports.github_summary import summary_text
from perfsuite.report.exports.markdown_text import code, table
from perfsuite.report.run_file import RunFile
from perfsuite.report.run_reader import read_run_file

#: What the file is called in the folder of a night.
SUMMARY_NAME = "summary.md"

_HEADER = ("board", "model", "scenario", "end", "time", "cases")


def summary_markdown(plan: NightPlan, night: Path, ends: Mapping[str, CellEnd]) -> str:
    """Return one table of all cells, and below it the summary of each run that can be read."""
    rows = [_row(cell, ends.get(cell.key)) for cell in plan.cells]
    runs = tuple(_runs(plan, night, ends))
    parts = [f"## Night {night.name}\n", table(_HEADER, rows)]
    return "\n".join([*parts, *([summary_text(runs)] if runs else [])])


def _row(cell: Cell, end: CellEnd | None) -> tuple[str, ...]:
    ending, time, cases = ending_words(end)
    told = cases if end is None or not end.why else code(cases)
    return code(board_words(cell, end)), code(cell.model), code(cell.scenario), ending, time, told


def _runs(plan: NightPlan, night: Path, ends: Mapping[str, CellEnd]) -> Iterator[RunFile]:
    for cell in plan.cells:
        path = night / cell.key / RUN_NAME
        if cell.key in ends and path.is_file():
            try:
                yield read_run_file(path)
            except PerfsuiteError:
                continue  # the table has it as broken, or it is a file of a later version
