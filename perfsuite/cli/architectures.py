"""``perfsuite architectures`` (prepare): list the models of the catalogue."""

from __future__ import annotations

import argparse

from perfsuite.cli.answer import Sheet, show
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.workload.catalog import find_model, listed_names, names, tiny_names


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "architectures",
        about="""
        --model takes these names with a quantisation (smollm2-135m-q8_0), --architecture takes them alone. Other
        architectures need a GGUF file or a config.json.
        """,
        examples={
            "perfsuite architectures": "name, architecture, parameters, layers",
            "perfsuite architectures --tiny": "tiny-gemma3 and the like",
        },
        see=(
            "perfsuite synthesize",
            "docs/forecasting.md",
        ),
    )
    parser.add_argument(
        "--tiny", action="store_true", help="list the smallest model of each architecture that llama.cpp knows"
    )
    parser.set_defaults(run=_architectures)


def _architectures(options: argparse.Namespace) -> int:
    found = tiny_names() if options.tiny else sorted((*names(), *listed_names()))
    rows = [
        (name, each.gguf_architecture, f"{each.n_parameters / 1e6:.0f} M", each.n_layers)
        for name in found
        for each in [find_model(name)]
    ]
    show(Sheet(("name", "GGUF architecture", "parameters", "layers"), rows))
    return 0
