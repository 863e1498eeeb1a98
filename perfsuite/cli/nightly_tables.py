"""The tables of ``perfsuite nightly`` on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of
from perfsuite.nightly.cell_end import CellEnd, Ending
from perfsuite.nightly.plan import Cell, NightPlan
from perfsuite.records.outcome import ORDER_OF_WEIGHT
from perfsuite.units import format_count

_STYLES = {Ending.MEASURED: "green", Ending.FAILED: "bold red", Ending.BROKEN: "yellow"}


def plan_answer(plan: NightPlan) -> Answer:
    """Return what a plan would run."""
    limits = fields_of(plan, "cell_limit_s", "night_limit_s", "wait_s")
    cells = [{**fields_of(cell, *_CELL), "words": list(cell.words)} for cell in plan.cells]
    return Answer(parts=lambda: _cell_parts(plan), plain=lambda: {**limits, "cells": cells})


#: What names a cell.
_CELL = ("board", "device", "model", "scenario")


def plain_cell(cell: Cell, end: CellEnd | None) -> dict[str, Any]:
    """Return a cell and what became of it as JSON has them; one that was not run has no ending."""
    told = fields_of(end, "exit_code", "seconds", "why", "place") if end else {}
    counts = {"ending": end and end.ending.value, "n_cases": dict(end.n_cases) if end else {}}
    return {**fields_of(cell, *_CELL), "folder": cell.key, **counts, **told}


def _cell_parts(plan: NightPlan) -> Iterator[Part]:
    rows = [(cell.board, cell.model, cell.scenario, " ".join(cell.words)) for cell in plan.cells]
    yield Sheet(("board", "model", "scenario", "pytest"), rows)
    yield (
        f"{format_count(len(plan.cells), 'cell')}, {plan.cell_limit_s:g} s each and {plan.night_limit_s:g} s in all at "
        f"the most; a board is waited for {plan.wait_s:g} s"
    )


def end_sheet(plan: NightPlan, ends: Mapping[str, CellEnd]) -> Sheet:
    """Return what became of the cells, in the order of the plan."""
    found = [(cell, ends.get(cell.key)) for cell in plan.cells]
    return Sheet(
        ("board", "model", "scenario", "end", ">time", "cases"),
        [(board_words(cell, end), cell.model, cell.scenario, *ending_words(end)) for cell, end in found],
        styles=[_STYLES[end.ending] if end else "yellow" for _, end in found],
    )


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
