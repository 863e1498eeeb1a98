"""What the subcommands share: the type of their list, and tables on standard output."""

from __future__ import annotations

import argparse
import io
import sys
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    #: What `add_subparsers` returns, to which each subcommand adds itself.
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]


def show(table: Table) -> None:
    """Print a table; through plain print, which fails as it should when the reader has gone."""
    out = io.StringIO()
    Console(file=out, width=None if sys.stdout.isatty() else 100, force_terminal=sys.stdout.isatty()).print(table)
    print(out.getvalue(), end="")
