"""Tables on a terminal that is narrower than they are: nothing is cut off, and each row still says whose it is.

First headings fold, then names and sentences; where that is not enough, the table is shown in blocks one below the
other, each of which begins with the columns that tell the rows apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from perfsuite.report.visible import folded_name, terminal_text, visible

#: Between two columns.
_GAP = 2
#: A narrower terminal cuts lines off.
_LEAST_TERMINAL = 16
#: A column that is folded is not narrower than this, unless one column alone leaves it less.
_LEAST_WIDTH = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """A column of a table, with the texts in it and how much room they take."""

    column: Column
    heading: Text
    cells: tuple[Text, ...]

    @property
    def tight(self) -> int:
        """The least width at which no cell folds."""
        return max(_width(self.cells), _longest_word(self.heading))

    @property
    def natural(self) -> int:
        """The width at which nothing folds."""
        return max(self.tight, _width([self.heading]))

    @property
    def least(self) -> int:
        """The width to which it may fold."""
        if self.column.no_wrap or self.column.justify == "right":
            return self.tight
        return min(self.tight, max(_LEAST_WIDTH, _longest_word(self.heading)))


def fitted(table: Table, console: Console) -> Iterator[Table]:
    """Yield a table in one block where it fits the width of the console, else in several that do.

    What names in its cells would do to a terminal is written out.
    """
    columns = [_measured(column, console) for column in table.columns]
    width = max(console.width, _LEAST_TERMINAL)
    for at, block in enumerate(_blocks(columns, width)):
        part = _block_table(table, block, _widths(block, width))
        part.title = None if at or table.title is None else _folded(_text(table.title, console), console.width)
        yield part


def _measured(column: Column, console: Console) -> _Measured:
    cells = tuple(_text(cell, console) for cell in column.cells)
    return _Measured(column=column, heading=_text(column.header, console), cells=cells)


def _text(cell: object, console: Console) -> Text:
    text = cell if isinstance(cell, Text) else console.render_str(str(cell), highlight=False)
    return Text("\n".join(map(visible, text.plain.split("\n"))), style=text.style)


def _blocks(columns: Sequence[_Measured], width: int) -> list[list[_Measured]]:
    """Part the columns into blocks that fit, each with the columns that tell the rows apart."""
    if _total([each.least for each in columns]) <= width:
        return [list(columns)]
    keys = list(columns[: _n_keys(columns, width)])
    blocks = [list(keys)]
    for each in columns[len(keys) :]:
        if len(blocks[-1]) > len(keys) and _total([own.least for own in (*blocks[-1], each)]) > width:
            blocks.append(list(keys))
        blocks[-1].append(each)
    return blocks


def _n_keys(columns: Sequence[_Measured], width: int) -> int:
    """Return how many of the first columns tell the rows apart, as far as they take no more than half of the width."""
    n_rows = len(columns[0].cells)
    for count in range(1, len(columns)):
        rows = {tuple(each.cells[row].plain for each in columns[:count]) for row in range(n_rows)}
        if len(rows) == n_rows or _total([each.least for each in columns[: count + 1]]) > width // 2:
            return count
    return 1


def _widths(block: Sequence[_Measured], width: int) -> list[int]:
    """Give each column its least width, then what is left to cells that fold, then to headings that do."""
    widths = [each.least for each in block]
    for wanted in ([each.tight for each in block], [each.natural for each in block]):
        for _ in range(width - _total(widths)):
            short = [at for at, own in enumerate(widths) if own < wanted[at]]
            if not short:
                break
            widths[min(short, key=widths.__getitem__)] += 1
    for _ in range(_total(widths) - width):
        widths[widths.index(max(widths))] -= 1  # a cell that no block has room for folds, whatever it is
    return widths


def _block_table(table: Table, block: Sequence[_Measured], widths: Sequence[int]) -> Table:
    part = Table(title_justify=table.title_justify, box=None, pad_edge=False)
    for each, width in zip(block, widths, strict=True):
        justify = each.column.justify
        part.add_column(_folded(each.heading, width), justify=justify, no_wrap=True, overflow="crop", width=width)
    for at, row in enumerate(table.rows):
        cells = [_folded(each.cells[at], width) for each, width in zip(block, widths, strict=True)]
        part.add_row(*cells, style=row.style, end_section=row.end_section)
    return part


def _folded(text: Text, width: int) -> Text:
    lines: list[str] = []
    for line in text.plain.split("\n"):
        lines.append("")
        for word in line.split(" "):
            told = f"{lines[-1]} {word}" if lines[-1] else word
            if Text(told).cell_len <= width:
                lines[-1] = told
                continue
            pieces = folded_name(word, width).split("\n")
            lines[-1:] = [*filter(None, lines[-1:]), *pieces]
    return Text("\n".join(map(terminal_text, lines)), style=text.style)  # each line keeps its own direction


def _width(texts: Sequence[Text]) -> int:
    return max((Text(line).cell_len for each in texts for line in each.plain.split("\n")), default=0)


def _longest_word(text: Text) -> int:
    return max((Text(word).cell_len for word in text.plain.split()), default=0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)
