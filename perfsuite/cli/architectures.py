"""``perfsuite architectures``."""

from __future__ import annotations

import argparse

from perfsuite.cli.answer import Answer, Records, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.workload.catalog import find_model, listed_names, names, tiny_names


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    add_command(
        commands,
        "architectures",
        about="""
        --model takes these names with a quantisation (smollm2-135m-q8_0), --architecture takes them alone. Other
        architectures need a GGUF file or a config.json.
        """,
        examples={
            "perfsuite architectures": "name, architecture, parameters, layers",
            "perfsuite architectures --tiny": "the smallest ones, such as tiny-gemma3",
        },
        see=("perfsuite synthesize", "docs/forecasting.md"),
        options=[("--tiny", "list the smallest model of each architecture that llama.cpp knows")],
        run=_architectures,
    )


def _architectures(options: argparse.Namespace) -> int:
    rows = tuple(
        (name, each.gguf_architecture, each.n_parameters, each.n_layers)
        for name in (tiny_names() if options.tiny else sorted((*names(), *listed_names())))
        for each in [find_model(name)]
    )
    records = Records(columns=tuple(_HEADINGS), rows=rows, shown=_SHOWN, headings=_HEADINGS)
    return give(Answer.of(records, empty="no architecture"), options)


_HEADINGS = {
    "name": "name",
    "gguf_architecture": "GGUF architecture",
    "n_parameters": "parameters",
    "n_layers": "layers",
}
_SHOWN = {"n_parameters": lambda count: f"{count / 1e6:.0f} M"}
