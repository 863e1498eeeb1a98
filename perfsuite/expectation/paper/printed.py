"""The values that the paper prints, with the window that its printing and its own rounding leave to a computation."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from perfsuite.expectation.paper.table_row import Inputs

#: Columns that are no input of the value.
_OTHER_COLUMNS = frozenset({"metric", "printed", "accept_low", "accept_high", "reproducible", "note"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCell:
    """One printed value."""

    table: int
    inputs: Inputs
    metric: str | None
    printed: float
    #: What a computation may give, both included; None where the cell is not reproducible.
    accept_low: float | None
    accept_high: float | None
    #: False for misprints, coarse grids and measurements that are not held.
    reproducible: bool
    #: Why a cell is not reproducible.
    note: str

    def accepts(self, value: float) -> bool:
        """Whether a value lies in the window; any does where there is none."""
        low, high = self.accept_low, self.accept_high
        return (low is None or value >= low) and (high is None or value <= high)


@cache
def printed_cells(table: int) -> tuple[PrintedCell, ...]:
    """Return the printed values of a table. *Source*: LIFE, Tables 4 to 12."""
    path = files("perfsuite.expectation.paper") / "published" / f"table{table}.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(_cell(table, line) for line in csv.DictReader(lines))


def _cell(table: int, line: Mapping[str, str]) -> PrintedCell:
    return PrintedCell(
        table=table,
        inputs=tuple((name, _input(text)) for name, text in line.items() if name not in _OTHER_COLUMNS),
        metric=line.get("metric"),
        printed=float(line["printed"]),
        accept_low=_number(line["accept_low"]),
        accept_high=_number(line["accept_high"]),
        reproducible=line["reproducible"] == "yes",
        note=line["note"] or "",
    )


def _input(text: str) -> str | int:
    return int(text) if text.isdigit() else text


def _number(text: str) -> float | None:
    return float(text) if text else None
