"""Tables for people: rows under headings, which the terminal shows as they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import JustifyMethod
    from rich.table import Table

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows under headings, for people: a heading that begins with ``>`` is above figures, and None is a dash."""

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    title: str = ""
    #: How each row is coloured, where some are.
    styles: Sequence[str | None] = ()

    @classmethod
    def of(cls, rows: Iterable[Row], columns: Mapping[str, Callable[[Row], object]], title: str = "") -> Sheet:
        """Return a row for each thing; under each heading is what a function gives of it."""
        return cls(tuple(columns), [[cell(row) for cell in columns.values()] for row in rows], title)

    def table(self) -> Table:
        """Return it as rich draws it."""
        from rich.markup import escape  # rich is slow to import
        from rich.table import Table
        from rich.text import Text

        table = Table(title=escape(self.title) or None, title_justify="left", box=None, pad_edge=False)
        for heading in self.headings:
            justify: JustifyMethod = "right" if heading.startswith(">") else "left"
            table.add_column(Text(heading.removeprefix(">")), justify=justify, overflow="fold")
        for at, row in enumerate(self.rows):
            cells = ("-" if cell is None else str(cell) for cell in row)
            table.add_row(*map(Text, cells), style=self.styles[at] if self.styles else None)
        return table
