"""What ``perfsuite nightly`` does and answers: the night itself, its table, its files, its exit code."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from perfsuite.cli.answer import show
from perfsuite.cli.nightly_summary import SUMMARY_NAME, summary_markdown
from perfsuite.cli.nightly_tables import end_sheet
from perfsuite.cli.progress import remarks
from perfsuite.errors import PerfsuiteError
from perfsuite.nightly.cell_end import CellEnd, Ending
from perfsuite.nightly.conduct import Night
from perfsuite.nightly.merged_junit import write_junit
from perfsuite.nightly.night_folder import held_night, last_night, new_night
from perfsuite.nightly.night_state import origin_here, read_state, write_state
from perfsuite.nightly.plan import NightPlan
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.terminal_text import terminal_text
from perfsuite.units import format_count

#: The merged report of all cells.
_JUNIT_NAME = "junit.xml"


def conduct_night(plan: NightPlan, options: argparse.Namespace) -> tuple[Path, Mapping[str, CellEnd]]:
    """Run a new night, or go on with the last one; return its folder, and what became of its cells.

    What ended before an interruption has been kept, and the files of the answer are written then, too.
    """
    told = remarks("nightly", options)
    folder = last_night(options.output) if options.resume else new_night(options.output)
    with held_night(folder) as lock:
        origin = origin_here()
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


def answer(plan: NightPlan, folder: Path, ends: Mapping[str, CellEnd]) -> int:
    """Print the table of a night, and return its exit code."""
    show(end_sheet(plan, ends), f"{terminal_text(str(folder))}: {SUMMARY_NAME}, {_JUNIT_NAME}")
    return exit_code(plan, ends)


def exit_code(plan: NightPlan, ends: Mapping[str, CellEnd]) -> int:
    """Return 1 where a cell fails, else 2 where one was not measured, else 10 where one judged nothing, else 0."""
    if any(end.ending is Ending.FAILED for end in ends.values()):
        return 1
    if not all((end := ends.get(cell.key)) and end.is_finished for cell in plan.cells):
        return 2
    return NOTHING_JUDGED_EXIT if any(end.is_unjudged for end in ends.values()) else 0


def write_files(plan: NightPlan, folder: Path, ends: Mapping[str, CellEnd]) -> None:
    """Write the summary and the merged JUnit report into the folder of the night."""
    write_whole_bytes(folder / SUMMARY_NAME, summary_markdown(plan, folder, ends).encode(), PerfsuiteError)
    write_junit(folder / _JUNIT_NAME, plan, folder, ends)
