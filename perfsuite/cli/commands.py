"""What the subcommands share: the type of their list, and how they answer on standard output."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.segment import Segment
from rich.table import Table

from perfsuite.report.terminal_text import terminal_text

if TYPE_CHECKING:
    #: What `add_subparsers` returns, to which each subcommand adds itself.
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

#: A table is as wide as it has to be where no terminal folds it.
_UNLIMITED = 10_000


def show(table: Table) -> None:
    """Print a table; through plain print, which fails as it should when the reader has gone.

    It is folded to the width of a terminal, and has lines of any length elsewhere. It has colours on a terminal, or
    where FORCE_COLOR asks for them, and none with NO_COLOR. What names in its cells would do to a terminal is written
    out.
    """
    out = io.StringIO()
    is_terminal = sys.stdout.isatty()
    console = Console(file=out, width=None if is_terminal else _UNLIMITED, force_terminal=is_terminal or None)
    parts = (Segment(_shown(part.text), part.style, part.control) for part in console.render(table))
    console.print(_Rendered(tuple(parts)), end="")
    print(out.getvalue(), end="")


def tell_picture(options: argparse.Namespace, path: Path, title: str) -> None:
    """Say what was drawn: on standard output, beside JSON on standard error, and not at all with ``--quiet``."""
    if not options.quiet:
        print(f"{path}: {terminal_text(title)}", file=sys.stderr if options.json else sys.stdout)


class _Rendered:
    """A table that is rendered already."""

    def __init__(self, parts: tuple[Segment, ...]) -> None:
        self._parts = parts

    def __rich_console__(self, *_: object) -> tuple[Segment, ...]:
        return self._parts


def _shown(text: str) -> str:
    return "\n".join(map(terminal_text, text.split("\n")))
