"""``perfsuite synthesize`` (prepare): write a GGUF file of true shapes and random weights."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_command
from perfsuite.units import format_bytes
from perfsuite.workload.catalog import find


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "synthesize",
        about="""
        The file has the tensors of an architecture of the catalogue, in their shapes and with a quantisation, and
        random values in them: an engine takes as long with it as with the real one, and what it generates says nothing.
        It has no tokenizer. 'pytest --device=host --model=NAME' makes such a file by itself where it needs one.
        """,
        examples={
            "perfsuite synthesize smollm2-135m -o smollm2.gguf": "139 MB, with the usual Q8_0",
            "perfsuite synthesize llama-3.2-1b --quant=q4_0 --layers=2 -o small.gguf": "two layers only",
        },
        writes="the file of --output",
        see=("perfsuite architectures --help",),
    )
    parser.add_argument("architecture", help="a name of the catalogue; see 'perfsuite architectures'")
    parser.add_argument("--quant", default="q8_0", help="weight quantisation (default q8_0)")
    parser.add_argument("--layers", type=int, metavar="N", help="another depth than the architecture's own")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write")
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
