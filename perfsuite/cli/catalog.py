"""``perfsuite architectures``: list the catalogue."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rich.table import Table

from perfsuite.cli.commands import show
from perfsuite.workload.catalog import find, names

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("architectures", help="list the catalogue of architectures")
    parser.set_defaults(run=_architectures)


def _architectures(_: argparse.Namespace) -> int:
    table = Table("name", "GGUF architecture", "parameters", "layers", box=None, pad_edge=False)
    for name in names():
        architecture = find(name)
        millions = f"{architecture.n_parameters / 1e6:.0f} M"
        table.add_row(name, architecture.gguf_architecture, millions, str(architecture.n_layers))
    show(table)
    return 0
