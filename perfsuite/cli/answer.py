"""How a subcommand answers: lines and sheets for people, JSON and CSV for programs, and pictures.

A subcommand makes one `Answer` of what it found and gives it; which of its forms is made, the options say.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Union

from perfsuite.errors import PerfsuiteError
from perfsuite.records.chart import Chart
from perfsuite.records.codec import plain_fields
from perfsuite.records.whole_file import write_whole_bytes
from perfsuite.report.charts.picture import picture_svg
from perfsuite.report.sheet import Sheet as Sheet
from perfsuite.report.visible import terminal_text

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

#: A table is as wide as it has to be where no terminal folds it.
_UNLIMITED = 10_000

#: Fields and properties of a record by their names, under which JSON has them.
fields_of = plain_fields


Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Rows under named columns, which programs get as JSON or CSV, and people as a sheet."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    #: By column: how a value is shown to people, where that is not its text.
    shown: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    #: By column: what people read above it, as a `Sheet` has it, where that is not its name.
    headings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        fields: Mapping[str, Callable[[Row], Any]],
        items: Iterable[Row],
        *,
        shown: Mapping[str, Callable[[Any], str]],
        headings: Mapping[str, str],
    ) -> Records:
        """Return a row an item, whose value in each column a function gives."""
        rows = tuple(tuple(value(item) for value in fields.values()) for item in items)
        return cls(columns=tuple(fields), rows=rows, shown=shown, headings=headings)

    def plain(self) -> list[dict[str, Any]]:
        """Return a dict a row, as JSON has it.

        Raises `PerfsuiteError`: two columns have one name.
        """
        doubled = [name for name, count in Counter(self.columns).items() if count > 1]
        if doubled:
            raise PerfsuiteError(
                f"--json: {doubled[0]!r} is the name of more than one column; give each its own with AS"
            )
        return [dict(zip(self.columns, map(plain_value, row), strict=True)) for row in self.rows]

    def csv(self) -> str:
        """Return a line for the columns and one a row; lists and dicts are JSON."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            values = map(plain_value, row)
            writer.writerow([json.dumps(each) if isinstance(each, list | dict) else each for each in values])
        return out.getvalue()

    def sheet(self) -> Sheet:
        """Return what people read, without the columns that are empty."""
        filled = [at for at in range(len(self.columns)) if any(row[at] not in (None, False) for row in self.rows)]
        shown = [self.shown.get(name, cell_text) for name in self.columns]
        return Sheet(
            [self.headings.get(self.columns[at], self.columns[at]) for at in filled],
            [[shown[at](row[at]) for at in filled] for row in self.rows],
        )


#: What people read, part by part.
Part: TypeAlias = Union[str, Sheet, "Table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a subcommand found. Each form may be a function, which is called only where that form is asked for."""

    #: Lines, sheets and tables, for people.
    parts: Iterable[Part] | Callable[[], Iterable[Part]]
    #: What is printed as JSON.
    plain: Any
    #: What is printed as CSV, where ``--csv`` asks for it.
    csv: Callable[[], str] | None = None

    @classmethod
    def of(cls, records: Records, *, empty: str) -> Answer:
        """Return the answer that is a list; `empty` says that nothing is in it."""
        parts = [records.sheet() if records.rows else terminal_text(empty)]
        return cls(parts=parts, plain=records.plain, csv=records.csv)


def give(answer: Answer, options: argparse.Namespace, exit_code: int = 0) -> int:
    """Print an answer in the form that ``--json`` and ``--csv`` ask for, or else for people; return the exit code."""
    if options.json:
        plain = answer.plain() if callable(answer.plain) else answer.plain
        print(json.dumps(plain_value(plain), indent=1))
    elif answer.csv is not None and getattr(options, "csv", False):
        print(answer.csv(), end="")
    else:
        show(*(answer.parts() if callable(answer.parts) else answer.parts))
    return exit_code


def show(*parts: Part) -> None:
    """Print lines and tables; through plain print, which fails as it should when the reader has gone.

    A table fits the width of a terminal, and has lines of any length elsewhere. It has colours on a terminal,
    or where FORCE_COLOR asks for them, and none with NO_COLOR. What names in its cells would do to a terminal is
    written out.
    """
    for part in parts:
        if isinstance(part, str):
            print(part)
        else:
            _print_table(part.table() if isinstance(part, Sheet) else part)


def check_picture(path: Path | None, *suffixes: str) -> None:
    """Refuse a picture that is neither SVG nor of a suffix that is named, before anything is measured for it."""
    if path is not None and path.suffix.lower() not in (".svg", *suffixes):
        drawn, others = " or ".join((".svg", *suffixes)), "a browser, Inkscape or rsvg-convert makes others of it"
        raise PerfsuiteError(f"{path}: suffix is {path.suffix!r}, only {drawn} is drawn; {others}")


def draw(chart: Chart, path: Path) -> None:
    """Write a picture."""
    write_whole_bytes(path, picture_svg(chart).encode(), PerfsuiteError)


def tell_picture(options: argparse.Namespace, path: Path, title: str) -> None:
    """Say what was drawn: on standard output, beside JSON on standard error, and not at all with ``--quiet``."""
    if not options.quiet:
        print(f"{path}: {terminal_text(title)}", file=sys.stderr if options.json else sys.stdout)


def figure(form: str, value: float | None) -> str:
    """Return a number in a form such as ``{:.2f} %``; a dash where it is not known."""
    return "-" if value is None else form.format(value)


def percent(ratio: float | None, digits: int = 1) -> str:
    """Return a share as per cent, such as ``12.5 %``; a dash where it is not known."""
    return "-" if ratio is None else f"{ratio * 100.0:.{digits}f} %"


def plain_value(value: Any) -> Any:
    """Return a value as JSON has it, which knows no infinity and nothing that is no number."""
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain_value(each) for key, each in value.items()}
    return value if isinstance(value, str | int | bool) or value is None else str(value)


def cell_text(value: Any) -> str:
    """Return a value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    plain = plain_value(value)
    return "-" if plain is None else str(plain)


def _print_table(table: Table) -> None:
    from rich.console import Console

    for column in table.columns:
        column.overflow, column.no_wrap = "fold", False  # nothing is cut off
        column.header = _harmless(column.header)
        column._cells[:] = map(_harmless, column._cells)
    out = io.StringIO()
    is_terminal = sys.stdout.isatty()
    Console(file=out, width=None if is_terminal else _UNLIMITED, force_terminal=is_terminal or None).print(table)
    print(out.getvalue(), end="")


def _harmless(cell: object) -> Text:
    """Return a cell with what would steer a terminal written out, in the lines that it has."""
    from rich.text import Text

    text = cell if isinstance(cell, Text) else Text.from_markup(str(cell))
    text.plain = "\n".join(map(terminal_text, text.plain.split("\n")))
    return text
