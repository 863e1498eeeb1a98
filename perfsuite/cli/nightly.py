"""``perfsuite nightly``: the night itself, its table, its files, its exit code."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfsuite.cli.answer import Answer, Sheet, fields_of, give
from perfsuite.cli.command_help import Commands, add_command, add_quiet
from perfsuite.cli.kept_folders import FOLDER
from perfsuite.cli.progress import remarks
from perfsuite.errors import PerfsuiteError
from perfsuite.nightly.cell_end import CellEnd, Ending
from perfsuite.nightly.conduct import Night
from perfsuite.nightly.merged_junit import write_junit
from perfsuite.nightly.night_plan import Cell, NightPlan, read_plan
from perfsuite.nightly.night_state import held_night, last_night, new_night, origin_here, read_state, write_state
from perfsuite.records.run_file import RUN_NAME, RunFile, read_run_file
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.exports.markdown import LIMIT_BYTES, summary_of
from perfsuite.report.exports.markdown_text import code, table
from perfsuite.report.visible import terminal_text
from perfsuite.units import format_count

#: Files in the folder of a night: its summary, and the merged report of all cells.
SUMMARY_NAME, _JUNIT_NAME = "summary.md", "junit.xml"

_HEADER = ("board", "model", "scenario", "end", "time", "cases")

#: What names a cell.
_CELL = ("board", "device", "model", "scenario")

#: Of the summary's table, so many rows at the most; a runner shows no more than `LIMIT_BYTES` in all.
_MOST_ROWS = 1_000

_STYLES = {Ending.MEASURED: "green", Ending.FAILED: "bold red", Ending.BROKEN: "yellow"}


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    default = Path(FOLDER) / "nightly"
    parser = add_command(
        commands,
        "nightly",
        about="""
        Each cell of the plan is one run. Boards are measured in parallel. Broken cells are tried once more at the end.
        --resume needs the same plan, commit and version.
        """,
        examples={
            "perfsuite nightly plan.toml --dry-run": "check the plan",
            "perfsuite nightly plan.toml -o nights": "measure; results are in nights/latest",
        },
        writes="a folder for the night, with night.json, summary.md, junit.xml and one folder for each cell",
        exits={
            1: "a case of a cell fails",
            2: "a cell could not be measured, or a mistake",
            10: "in a cell nothing could be judged",
            11: "in a cell something looks slower, not proven, or there were fewer than five pairs",
        },
        see=("docs/how-to/run-it-nightly.md", "perfsuite history"),
        options=[
            ("plan PLAN", "TOML file, as docs/how-to/run-it-nightly.md describes", Path),
            ("--board NAME", "only this board of the plan; repeatable", {"action": "append"}),
            ("--dry-run", "check the plan and list its cells"),
            ("--resume", "continue the last night"),
            ("-o --output FOLDER", f"folder of the nights (default {default})", Path, default),
        ],
        run=_nightly,
    )
    add_quiet(parser)
    parser.set_defaults(makes_folder=True)


def _nightly(options: argparse.Namespace) -> int:
    plan = read_plan(options.plan)
    if options.board is not None:
        plan = plan.of_boards(options.board)
    if options.dry_run:
        return give(_plan_answer(plan), options)
    night, ends = _conduct(plan, options)
    code = _exit_code(plan, ends)
    plain = {
        "folder": str(night),
        "files": [str(night / name) for name in (SUMMARY_NAME, _JUNIT_NAME)],
        "exit_code": code,
        "cells": [_plain_cell(cell, ends.get(cell.key)) for cell in plan.cells],
    }
    found = [(cell, ends.get(cell.key)) for cell in plan.cells]
    sheet = Sheet(
        ("board", "model", "scenario", "end", ">time", "cases"),
        [(_board_words(cell, end), cell.model, cell.scenario, *_ending_words(end)) for cell, end in found],
        styles=[_STYLES[end.ending] if end else "yellow" for _, end in found],
    )
    line = f"{terminal_text(str(night))}: {SUMMARY_NAME}, {_JUNIT_NAME}"
    return give(Answer(parts=[sheet, line], plain=plain), options, code)


def _plan_answer(plan: NightPlan) -> Answer:
    rows = [(cell.board, cell.model, cell.scenario, " ".join(cell.words)) for cell in plan.cells]
    line = (
        f"{format_count(len(plan.cells), 'cell')}, {plan.cell_limit_s:g} s each and {plan.night_limit_s:g} s in all at "
        f"the most; a board is waited for {plan.wait_s:g} s"
    )
    plain = {
        **fields_of(plan, "cell_limit_s", "night_limit_s", "wait_s"),
        "cells": [{**fields_of(cell, *_CELL), "words": list(cell.words)} for cell in plan.cells],
    }
    return Answer(parts=[Sheet(("board", "model", "scenario", "pytest"), rows), line], plain=plain)


def _plain_cell(cell: Cell, end: CellEnd | None) -> dict[str, Any]:
    """Return a cell and what became of it as JSON has them; one that was not run has no ending."""
    told = fields_of(end, "exit_code", "seconds", "why", "place") if end else {}
    counts = {"ending": end and end.ending.value, "n_cases": dict(end.n_cases) if end else {}}
    return {**fields_of(cell, *_CELL), "folder": cell.key, **counts, **told}


def _conduct(plan: NightPlan, options: argparse.Namespace) -> tuple[Path, Mapping[str, CellEnd]]:
    """Run a new night, or go on with the last one; return its folder, and what became of its cells.

    What ended before an interruption has been kept, and the files of the answer are written then, too.
    """
    told = remarks("nightly", options)
    origin = origin_here()
    folder = last_night(options.output) if options.resume else new_night(options.output, plan, origin)
    with held_night(folder) as lock:
        ends = read_state(folder, plan, origin) if options.resume else {}
        night = Night(plan, folder, ends, lock=lock, tell=told.remark, origin=origin)
        n_finished = sum(end.is_finished for end in ends.values())
        if n_finished == len(plan.cells):
            write_state(folder, plan, ends, origin)  # it may have been ended between its last cell and its answer
            write_files(plan, folder, ends)
            raise PerfsuiteError(
                f"{folder}: this night is complete; nothing was measured; leave out --resume for another"
            )
        known = f", {n_finished} of which had been measured before" if n_finished else ""
        told.remark(f"{folder}: {format_count(len(plan.cells), 'cell')}{known}")
        try:
            night.run()
        finally:
            write_files(plan, folder, night.ends)
    return folder, night.ends


def _exit_code(plan: NightPlan, ends: Mapping[str, CellEnd]) -> int:
    """Return 1 where a cell fails, else 2 where one was not measured, else the largest of their codes: 11, 10 or 0."""
    if any(end.ending is Ending.FAILED for end in ends.values()):
        return 1
    if not all((end := ends.get(cell.key)) and end.is_finished for cell in plan.cells):
        return 2
    return max((end.open_code for end in ends.values()), default=0)


def write_files(plan: NightPlan, folder: Path, ends: Mapping[str, CellEnd]) -> None:
    """Write the summary and the merged JUnit report into the folder of the night."""
    write_whole_bytes(folder / SUMMARY_NAME, summary_markdown(plan, folder, ends).encode(), PerfsuiteError)
    write_junit(folder / _JUNIT_NAME, plan, folder, ends)


def summary_markdown(plan: NightPlan, night: Path, ends: Mapping[str, CellEnd]) -> str:
    """Return one table of all cells, and below it the summary of each run that can be read.

    Where there is no room for all, those stay that fail or were not measured.
    """
    cells = plan.cells
    if (n_left_out := len(cells) - _MOST_ROWS) > 0:
        cells = tuple(sorted(cells, key=lambda cell: _weight(ends.get(cell.key))))
    rows = [
        (*map(code, (_board_words(cell, end), cell.model, cell.scenario)), *_ending_words(end)[:2], _cases_code(end))
        for cell in cells[:_MOST_ROWS]
        for end in [ends.get(cell.key)]
    ]
    told = [f"_Left out to save room: {format_count(n_left_out, 'cell')}; night.json has all._\n"]
    head = "\n".join([f"## Night {night.name}\n", table(_HEADER, rows), *(told if n_left_out > 0 else [])])
    paths = [path for cell in cells if cell.key in ends and (path := night / cell.key / RUN_NAME).is_file()]
    if not paths:
        return head
    return f"{head}\n{summary_of(_runs(paths), len(paths), limit=LIMIT_BYTES - len(head.encode()) - 1)}"


def _weight(end: CellEnd | None) -> int:
    """What fails comes first, then what was not measured, then what is suspect or judged nothing."""
    if end is None or end.ending is Ending.BROKEN:
        return 1
    return 0 if end.ending is Ending.FAILED else 2 if end.open_code else 3


def _cases_code(end: CellEnd | None) -> str:
    told = _ending_words(end)[2]
    return told if end is None or not end.why else code(told)


def _runs(paths: Sequence[Path]) -> Iterator[RunFile]:
    for path in paths:
        try:
            yield read_run_file(path)
        except PerfsuiteError:
            continue  # the table has it as broken, or it is a file of a later version


def _board_words(cell: Cell, end: CellEnd | None) -> str:
    """Return the board of a cell, and which one of a farm it was."""
    return cell.board if end is None or end.place is None else f"{cell.board} ({end.place})"


def _ending_words(end: CellEnd | None) -> tuple[str, str, str]:
    """Return the end of a cell in words, its time, and its cases by outcome or why there are none."""
    if end is None:
        return "not run", "-", "-"
    return end.ending.value, f"{end.seconds:.0f} s", end.cases_text or "-"
