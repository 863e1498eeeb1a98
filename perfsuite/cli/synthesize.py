"""``perfsuite synthesize``: write a GGUF file of true shapes and random weights."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.units import format_bytes
from perfsuite.workload.catalog import find

if TYPE_CHECKING:
    from perfsuite.cli.commands import Commands


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("synthesize", help="write a GGUF file of true shapes and random weights")
    parser.add_argument("architecture", help="a name of the catalogue; see 'perfsuite architectures'")
    parser.add_argument("--quant", default="q8_0", help="weight quantisation (default q8_0)")
    parser.add_argument("--layers", type=int, help="another depth than the architecture's own")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to write")
    parser.set_defaults(run=_synthesize)


def _synthesize(options: argparse.Namespace) -> int:
    from perfsuite.workload.synthetic import write_synthetic

    architecture = find(options.architecture)
    if options.layers is not None:
        architecture = architecture.with_layers(options.layers)
    write_synthetic(architecture, options.quant, options.output)
    size = options.output.stat().st_size
    print(f"{options.output}: {architecture.name}, {options.quant}, {format_bytes(size)}")
    return 0
