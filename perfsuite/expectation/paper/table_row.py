"""A computed value of one of the paper's tables, and the units and prompts that the tables share."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find

#: The columns that a value follows from, by name, in the table's order.
Inputs: TypeAlias = tuple[tuple[str, str | int], ...]

#: The paper's GB and MB, and what it calls TOPs and GOPs.
GIB = 1 << 30
MIB = 1 << 20
TERA = 1e12
GIGA = 1e9

#: Prompts of every table: the powers of two from 32 to 65536.
PROMPTS = tuple(1 << exponent for exponent in range(5, 17))
#: The one prompt of Tables 6 and 10 that is no power of two.
ODD_PROMPT = 1536


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One value with what it follows from."""

    table: int
    inputs: Inputs
    #: None in a table of one metric.
    metric: str | None
    value: float


def table_rows(
    table: int, values: Mapping[str, float] | Mapping[None, float], **inputs: str | int
) -> Iterator[TableRow]:
    """Yield a row for each metric of one set of inputs."""
    for metric, value in values.items():
        yield TableRow(table=table, inputs=tuple(inputs.items()), metric=metric, value=value)


def llama2_7b() -> Architecture:
    """Return the architecture of every table but the eighth."""
    return find("llama-2-7b")


def prompts_with_odd() -> tuple[int, ...]:
    """List the prompts of Tables 6 and 10 in order."""
    return tuple(sorted((*PROMPTS, ODD_PROMPT)))


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
        """Whether a value is in the window; any does where there is none."""
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
