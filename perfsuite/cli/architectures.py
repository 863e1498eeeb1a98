"""``perfsuite architectures``: list the catalogue of architectures."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rich.table import Table

from perfsuite.cli.command_help import add_command
from perfsuite.cli.commands import show
from perfsuite.workload.catalog import find, names

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "architectures",
        about="""
        These names are what --architecture takes, and, with a quantisation behind a dash (smollm2-135m-q8_0), --model.
        A GGUF file or a config.json of any other architecture that the suite knows is taken by its path.
        """,
        examples={"perfsuite architectures": "name, llama.cpp's architecture, parameters, layers"},
        see=("perfsuite synthesize --help", "docs/forecasting.md"),
    )
    parser.set_defaults(run=_architectures)


def _architectures(_: argparse.Namespace) -> int:
    table = Table("name", "GGUF architecture", "parameters", "layers", box=None, pad_edge=False)
    for name in names():
        architecture = find(name)
        millions = f"{architecture.n_parameters / 1e6:.0f} M"
        table.add_row(name, architecture.gguf_architecture, millions, str(architecture.n_layers))
    show(table)
    return 0
