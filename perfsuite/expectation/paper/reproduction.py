"""The paper's tables, computed, beside what it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.paper.decode_tables import (
    table_4,
    table_5,
    table_6,
    table_7,
    table_8,
    table_9,
    table_10,
    table_11,
    table_12,
)
from perfsuite.expectation.paper.printed import PrintedCell, printed_cells
from perfsuite.expectation.paper.table_row import TableRow

#: Every table by its number.
PAPER_TABLES: Mapping[int, Callable[[], Iterator[TableRow]]] = MappingProxyType(
    {4: table_4, 5: table_5, 6: table_6, 7: table_7, 8: table_8, 9: table_9, 10: table_10, 11: table_11, 12: table_12}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproducedRow:
    """A computed value and the printed one, None where the paper prints none."""

    row: TableRow
    cell: PrintedCell | None

    @property
    def relative_error(self) -> float | None:
        """Computed over printed less 1; None where nothing is printed or 0 is."""
        return None if self.cell is None or not self.cell.printed else self.row.value / self.cell.printed - 1.0

    @property
    def inside(self) -> bool | None:
        """Whether the value is in the window of a reproducible cell; None without such a cell."""
        if self.cell is None or not self.cell.reproducible:
            return None
        return self.cell.accepts(self.row.value)


def reproduce(table: int) -> tuple[ReproducedRow, ...]:
    """Compute a table and join it to its printed values.

    Raises PerfsuiteError for a table that the paper does not have, or a reproducible cell that no row computes.
    """
    if table not in PAPER_TABLES:
        raise PerfsuiteError(f"table {table!r} is not LIFE's; accepted are {', '.join(map(str, PAPER_TABLES))}")
    cells = {_key(cell): cell for cell in printed_cells(table)}
    rows = tuple(ReproducedRow(row=row, cell=cells.pop(_key(row), None)) for row in PAPER_TABLES[table]())
    for cell in cells.values():
        if cell.reproducible:
            raise PerfsuiteError(f"table {table}: no row is computed for {dict(cell.inputs)}, metric {cell.metric}")
    return rows


def _key(row: TableRow | PrintedCell) -> tuple[object, ...]:
    return frozenset(row.inputs), row.metric
