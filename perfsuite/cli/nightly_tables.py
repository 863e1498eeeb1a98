"""The tables of ``perfsuite nightly`` on the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from perfsuite.cli.commands import show
from perfsuite.nightly.cell_end import CellEnd, Ending
from perfsuite.nightly.plan import Cell, NightPlan
from perfsuite.records.outcome import ORDER_OF_WEIGHT
from perfsuite.units import format_count

_STYLES = {Ending.MEASURED: "green", Ending.FAILED: "bold red", Ending.BROKEN: "yellow"}


def show_cells(plan: NightPlan) -> None:
    """Print what a plan would run."""
    table = _table("board", "model", "scenario", "pytest")
    for cell in plan.cells:
        table.add_row(*map(Text, (cell.board, cell.model, cell.scenario, " ".join(cell.words))))
    show(table)
    counted = format_count(len(plan.cells), "cell")
    print(
        f"{counted}, {plan.cell_limit_s:g} s each and {plan.night_limit_s:g} s in all at the most; "
        f"a board is waited for {plan.wait_s:g} s"
    )


def show_ends(plan: NightPlan, ends: Mapping[str, CellEnd]) -> None:
    """Print what became of the cells, in the order of the plan."""
    table = _table("board", "model", "scenario", "end", "time", "cases")
    for cell in plan.cells:
        end = ends.get(cell.key)
        style = _STYLES[end.ending] if end else "yellow"
        table.add_row(*map(Text, (board_words(cell, end), cell.model, cell.scenario, *ending_words(end))), style=style)
    show(table)


def board_words(cell: Cell, end: CellEnd | None) -> str:
    """Return the board of a cell, and which one of a farm it was."""
    return cell.board if end is None or end.place is None else f"{cell.board} ({end.place})"


def ending_words(end: CellEnd | None) -> tuple[str, str, str]:
    """Return the end of a cell in words, its time, and its cases by outcome or why there are none."""
    if end is None:
        return "not run", "-", "-"
    shown = [each.value for each in ORDER_OF_WEIGHT if end.n_cases.get(each.value)]
    counted = ", ".join(f"{end.n_cases[name]} {name}" for name in shown)
    return end.ending.value, f"{end.seconds:.0f} s", "; ".join(filter(None, (counted, end.why))) or "-"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column == "time" else "left", overflow="fold")
    return table
