"""Tables 7 and 9."""

from __future__ import annotations

from functools import cache

import pytest

from perfsuite.expectation.paper import tables
from perfsuite.expectation.paper.tables import (
    PAPER_TABLES,
    PROMPTS,
    PrintedCell,
    ReproducedRow,
    TableRow,
    printed_cells,
    reproduce,
    table_11,
)
from perfsuite.workload.variant import variant_names

_CELLS = [cell for table in PAPER_TABLES for cell in printed_cells(table) if cell.reproducible]


def _name(cell: PrintedCell) -> str:
    return "-".join(str(each) for each in (cell.table, *dict(cell.inputs).values(), cell.metric) if each is not None)


@cache
def rows_of(table: int) -> tuple[ReproducedRow, ...]:
    return reproduce(table)


@pytest.mark.parametrize("table", sorted({cell.table for cell in _CELLS}))
def test_every_printed_cell_is_reproduced(table: int) -> None:
    for cell in (each for each in _CELLS if each.table == table):
        (row,) = (each for each in rows_of(table) if each.cell == cell)
        assert cell.accept_low is not None
        assert cell.accept_high is not None
        assert cell.accept_low <= row.row.value <= cell.accept_high, _name(cell)
        assert row.inside is True, _name(cell)


def test_all_cells_are_held() -> None:
    """Tables 4 to 12 hold 119 reproducible cells and 31 others, each of which has its reason and no window.

    A window holds the printed value.
    """
    every = [cell for table in PAPER_TABLES for cell in printed_cells(table)]
    others = [cell for cell in every if not cell.reproducible]
    assert (len(_CELLS), len(others)) == (119, 31)
    assert all(cell.note for cell in others)
    assert tuple(PAPER_TABLES) == tuple(range(4, 13))
    for cell in every:
        assert (cell.accept_low is not None) is (cell.accept_high is not None) is cell.reproducible
        assert cell.accepts(cell.printed)


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
    """A row beside its cell is not inside, and its relative error is the computed value over the printed one.

    Table 4 prints 0.0 % of softmax for 256 tokens, which has none.
    """
    right = rows_of(8)
    assert [row.relative_error for row in rows_of(4) if row.cell is not None and row.cell.printed == 0.0] == [None]

    def wrong() -> list[TableRow]:
        return [TableRow(table=8, inputs=row.row.inputs, metric=None, value=row.row.value * 1.1) for row in right]

    monkeypatch.setattr(tables, "PAPER_TABLES", {8: wrong})
    rows = reproduce(8)
    printed = [row for row in rows if row.cell is not None]
    assert [row.inside for row in printed] == [False] * 5
    assert [row.relative_error for row in printed] == pytest.approx([0.1] * 5)
    assert {row.inside for row in rows if row.cell is None} == {None}


_MIB = 1 << 20
_VALUES = {tuple(dict(row.inputs).values()): row.value for row in table_11()}
#: Weights and RoPE tables in MiB, and elements of a position: cached K and V, operand K, operand V.
_ATTENTIONS = {
    "MHA": (128 + 2, 2 * 32 * 128, 32 * 128, 32 * 128),
    "GQA": (64 + 16 + 2, 2 * 8 * 128, 32 * 128, 32 * 128),
    "MQA": (64 + 2 + 2, 2 * 128, 32 * 128, 32 * 128),
    "MLA": (38 + 16 + 0.5, 32 * 256, 32 * 192, 32 * 128),
}
_BYTES = {"Eager": 2.0, "Fused": 2.0, "Fused-KV8": 1.0, "Fused-KV4": 0.5}


@pytest.mark.parametrize("attention", _ATTENTIONS)
@pytest.mark.parametrize("mode", _BYTES)
def test_a_cell_is_the_closed_form_cut(mode: str, attention: str) -> None:
    """Weights, tables and 8192 + token - 1 positions of cache, operand K and, eager, operand V and scores; cut."""
    constant, cached, operand_k, operand_v = _ATTENTIONS[attention]
    elements = cached + operand_k + (operand_v if mode == "Eager" else 0)
    scores = 4 * 32 * 2 if mode == "Eager" else 0
    for token in (1, 2, 256, 1024, 2000):
        mib = constant + (8192 + token - 1) * (elements * _BYTES[mode] + scores) / _MIB
        assert _VALUES[mode, attention, token] == int(mib)
        assert isinstance(_VALUES[mode, attention, token], int)
