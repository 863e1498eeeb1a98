"""``perfsuite reproduce``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.expectation.paper.tables import PAPER_TABLES, Inputs, ReproducedRow, reproduce

_LEGEND = """error: the largest of the reproducible cells in a line, most of it the rounding of what is printed
* not reproducible: a misprint, a coarse grid, or another prompt than the line's"""


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    add_command(
        commands,
        "reproduce",
        about="Cells that cannot be reproduced, such as misprints, are marked.",
        examples={"perfsuite reproduce life --table=4": "one table"},
        exits={1: "a cell differs by more than its rounding"},
        see=("docs/forecasting.md",),
        options=[
            ("paper {life}", "'Forecasting LLM Inference Performance', Tables 4 to 12"),
            ("--table N", "one table (default: all)", int),
        ],
        run=_reproduce,
    )


def _reproduce(options: argparse.Namespace) -> int:
    tables = tuple(PAPER_TABLES) if options.table is None else (options.table,)
    rows = [row for table in tables for row in reproduce(table)]
    judged = [row.inside for row in rows if row.inside is not None]
    parts: list[Part] = []
    for table in tables:
        parts += [_sheet(table, [row for row in rows if row.row.table == table]), ""]
    parts += [_LEGEND, f"{sum(judged)} of {len(judged)} reproducible cells inside their windows"]
    return give(Answer(parts=parts, plain=list(map(_plain, rows))), options, 0 if all(judged) else 1)


def _plain(row: ReproducedRow) -> dict[str, object]:
    plain: dict[str, object] = {"table": row.row.table, **dict(row.row.inputs)}
    if row.row.metric is not None:
        plain["metric"] = row.row.metric
    plain["value"] = row.row.value
    if row.cell is not None:
        plain |= fields_of(row.cell, "printed", "accept_low", "accept_high", "reproducible")
        plain["relative_error"] = row.relative_error
    return plain


def _sheet(number: int, rows: Sequence[ReproducedRow]) -> Sheet:
    """Lay a table out as the paper does: a line for each input, a column for each metric."""
    metrics = tuple(dict.fromkeys(row.row.metric for row in rows))
    lines: dict[Inputs, list[ReproducedRow]] = {}
    for row in rows:
        lines.setdefault(row.row.inputs, []).append(row)
    shown = []
    for inputs, cells in lines.items():
        by_metric = {cell.row.metric: cell for cell in cells}
        values = (_value(by_metric.get(metric)) for metric in metrics)
        shown.append((*(value for _, value in inputs), *values, _largest_error(cells)))
    headings = (*dict(rows[0].row.inputs), *(metric or "value" for metric in metrics), "error")
    return Sheet(headings, shown, f"Table {number}: computed [printed]")


def _value(row: ReproducedRow | None) -> str:
    """The computed value with the printed one, marked where it is outside its window or has none."""
    if row is None:
        return "-"
    text = f"{row.row.value:.6g}"
    if row.cell is None:
        return text
    starred, mark = {True: ("", ""), False: ("", " outside"), None: ("*", "")}[row.inside]
    return f"{text} [{row.cell.printed:g}{starred}]{mark}"


def _largest_error(rows: Sequence[ReproducedRow]) -> str:
    errors = [row.relative_error for row in rows if row.relative_error is not None and row.inside is not None]
    return f"{max(errors, key=abs) * 100.0:+.2f} %" if errors else ""
