"""Holds every table that a test prints against a terminal of 80 columns."""

from __future__ import annotations

import io
import re
from itertools import chain

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from perfsuite.cli.narrow_table import fitted
from perfsuite.report.visible import visible

#: What the narrowest terminal has that people work with.
WIDTH = 80

#: What is put around a text from right to left, line by line.
_ISOLATES = re.compile("[\u2068\u2069]")


def rendered(table: Table, width: int = WIDTH) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for block in fitted(table, console):
        console.print(block)
    out = console.file
    assert isinstance(out, io.StringIO)
    return out.getvalue().splitlines()


def hold_table(table: Table, width: int = WIDTH) -> None:
    """Fail where a table is wider than the terminal, lacks a letter of a cell, or parts a row from what it is of."""
    assert max(map(cell_len, rendered(table, width)), default=0) <= width
    console = Console(file=io.StringIO(), width=width, color_system=None)
    blocks = list(fitted(table, console))
    first = [_letters(cell) for cell in blocks[0].columns[0].cells]
    assert [[_letters(cell) for cell in block.columns[0].cells] for block in blocks] == [first] * len(blocks)
    told = [[_letters(each) for each in _column(block, at)] for block in blocks for at in range(len(block.columns))]
    wanted = [[_letters(_shown(each)) for each in _column(table, at)] for at in range(len(table.columns))]
    assert [each for each in wanted if each not in told] == []


def _column(table: Table, at: int) -> list[object]:
    column = table.columns[at]
    return list(chain([column.header], column.cells))


def _shown(cell: object) -> Text:
    """What a terminal is to show of a cell of the table itself."""
    text = cell if isinstance(cell, Text) else Text.from_markup(str(cell))
    return Text("\n".join(map(visible, text.plain.split("\n"))))


def _letters(cell: object) -> str:
    return "".join(_ISOLATES.sub("", cell.plain if isinstance(cell, Text) else str(cell)).split())
