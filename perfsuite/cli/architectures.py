"""``perfsuite architectures`` (prepare): list the catalogue of architectures."""

from __future__ import annotations

import argparse

from perfsuite.cli.answer import Sheet, show
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.workload.catalog import find, names


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
    rows = [
        (name, each.gguf_architecture, f"{each.n_parameters / 1e6:.0f} M", each.n_layers)
        for name in names()
        for each in [find(name)]
    ]
    show(Sheet(("name", "GGUF architecture", "parameters", "layers"), rows))
    return 0
