"""A table of facts, as the lower part of the page shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """What is told of one thing."""

    name: str
    cells: tuple[str, ...]
    #: Whether the runs of the page do not agree on it.
    differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTable:
    """Facts of one sort."""

    title: str
    #: What they are, in a sentence; empty where the title says it.
    note: str
    #: Over the names, then over each cell.
    headings: tuple[str, ...]
    rows: tuple[FactRow, ...]
    #: Whether the cells are figures, which stand under each other by their ends.
    is_numeric: bool = False


def fact_row(name: str, *cells: str) -> FactRow:
    """Return a row on which nothing can differ."""
    return FactRow(name=name, cells=cells)


def filled(tables: Iterable[FactTable]) -> tuple[FactTable, ...]:
    """Return the tables that have a row."""
    return tuple(table for table in tables if table.rows)


def compared_row(name: str, values: Sequence[str | None]) -> FactRow:
    """Return a row of one value a run; it differs where the runs that have it do not agree."""
    known = {value for value in values if value is not None}
    return FactRow(name=name, cells=tuple(value or "-" for value in values), differs=len(known) > 1)
