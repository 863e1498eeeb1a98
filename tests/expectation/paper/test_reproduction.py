"""Every printed cell that can be reproduced."""

from __future__ import annotations

from functools import cache

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.paper import reproduction
from perfsuite.expectation.paper.printed import PrintedCell, printed_cells
from perfsuite.expectation.paper.reproduction import PAPER_TABLES, ReproducedRow, reproduce
from perfsuite.expectation.paper.table_row import PROMPTS, TableRow
from perfsuite.workload.variant import variant_names

_CELLS = [cell for table in PAPER_TABLES for cell in printed_cells(table) if cell.reproducible]


def _name(cell: PrintedCell) -> str:
    return "-".join(str(each) for each in (cell.table, *dict(cell.inputs).values(), cell.metric) if each is not None)


@cache
def rows_of(table: int) -> tuple[ReproducedRow, ...]:
    """The rows of a table, computed once."""
    return reproduce(table)


@pytest.mark.parametrize("table", sorted({cell.table for cell in _CELLS}))
def test_every_printed_cell_is_reproduced(table: int) -> None:
    """The computed value lies in the window of its cell."""
    for cell in (each for each in _CELLS if each.table == table):
        (row,) = (each for each in rows_of(table) if each.cell == cell)
        assert cell.accept_low is not None
        assert cell.accept_high is not None
        assert cell.accept_low <= row.row.value <= cell.accept_high, _name(cell)
        assert row.inside is True, _name(cell)


def test_all_cells_are_held() -> None:
    """Tables 4 to 12 hold 119 reproducible cells and 31 others, each of which has its reason."""
    others = [cell for table in PAPER_TABLES for cell in printed_cells(table) if not cell.reproducible]
    assert (len(_CELLS), len(others)) == (119, 31)
    assert all(cell.note for cell in others)
    assert tuple(PAPER_TABLES) == tuple(range(4, 13))


@pytest.mark.parametrize("table", PAPER_TABLES)
def test_no_row_is_told_twice(table: int) -> None:
    """Inputs and metric name one value."""
    keys = [(row.row.inputs, row.row.metric) for row in rows_of(table)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("table", [4, 5, 6, 7, 9, 10])
def test_every_power_of_two_and_variant_is_a_row(table: int) -> None:
    """Prompts go from 32 to 65536, and where variants differ all eight are computed at each."""
    assert (PROMPTS[0], PROMPTS[-1]) == (32, 65536)
    rows = [dict(row.row.inputs) for row in rows_of(table)]
    assert set(PROMPTS) <= {row["prompt"] for row in rows}
    if table in (5, 7, 9):
        pairs = {(variant, prompt) for variant in variant_names() for prompt in PROMPTS}
        assert {(row["variant"], row["prompt"]) for row in rows} == pairs


def test_a_value_outside_its_window_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row beside its cell is not inside, and its relative error is the computed value over the printed one."""

    right = rows_of(8)

    def wrong() -> list[TableRow]:
        return [TableRow(table=8, inputs=row.row.inputs, metric=None, value=row.row.value * 1.1) for row in right]

    monkeypatch.setattr(reproduction, "PAPER_TABLES", {8: wrong})
    rows = reproduce(8)
    printed = [row for row in rows if row.cell is not None]
    assert [row.inside for row in printed] == [False] * 5
    assert [row.relative_error for row in printed] == pytest.approx([0.1] * 5)
    assert {row.inside for row in rows if row.cell is None} == {None}


def test_a_cell_that_no_row_computes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reproducible cell cannot be passed over."""
    monkeypatch.setattr(reproduction, "PAPER_TABLES", {8: lambda: ()})
    with pytest.raises(PerfsuiteError, match=r"table 8: no row is computed for .*Llama2-7B-int4"):
        reproduce(8)


def test_a_printed_zero_has_no_relative_error() -> None:
    """Table 4 prints 0.0 % of softmax for 256 tokens."""
    (row,) = (each for each in rows_of(4) if each.row.metric == "softmax_pct" and each.row.inputs == (("prompt", 256),))
    assert row.cell is not None
    assert row.cell.printed == 0.0
    assert row.relative_error is None


@pytest.mark.parametrize("table", [3, 13])
def test_another_table_is_refused(table: int) -> None:
    """The error lists the tables."""
    with pytest.raises(PerfsuiteError, match=f"table {table} is not LIFE's; accepted are 4, 5, 6, 7, 8, 9, 10, 11, 12"):
        reproduce(table)
