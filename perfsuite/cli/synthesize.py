"""``perfsuite synthesize`` (prepare): write a GGUF file of true shapes and random weights."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.command_help import Commands, add_command, add_json
from perfsuite.cli.kept_folders import user_cache
from perfsuite.measure.model_tensors import with_engine_tensors
from perfsuite.units import format_bytes
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find_model
from perfsuite.workload.config_metadata import spec_of_config
from perfsuite.workload.model_shape import ModelShape
from perfsuite.workload.model_spec import read_spec


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    parser = add_command(
        commands,
        "synthesize",
        about="""
        The file has the tensors of a model in their shapes and with a quantisation, random values in them, and a
        vocabulary that is made up: an engine takes as long with it as with the real one, and what it generates says
        nothing. 'pytest --device=host --model=NAME' makes such a file by itself where it needs one.

        The model is a name of the catalogue, 'tiny-' and the name of any architecture that llama.cpp knows, or a file:
        a config.json of Hugging Face, or a TOML file with 'architecture' and a table [metadata] of GGUF keys without
        the prefix. Of a file the engine is asked which tensors the model has; those that it could also lack are left
        out but for the kinds under 'wanted', such as wanted = ["attn_q.bias", "output.weight"].
        """,
        examples={
            "perfsuite synthesize smollm2-135m -o smollm2.gguf": "139 MB, with the usual Q8_0",
            "perfsuite synthesize llama-3.2-1b --quant=q4_0 --layers=2 -o small.gguf": "two layers only",
            "perfsuite synthesize tiny-gemma3 -o tiny.gguf": "the smallest of its architecture",
        },
        writes="the file of --output",
        see=("perfsuite architectures --help",),
    )
    parser.add_argument(
        "architecture",
        help="a name of the catalogue (see 'perfsuite architectures'), or the path of a config.json or a TOML file",
    )
    parser.add_argument("--quant", default="q8_0", help="weight quantisation (default q8_0)")
    parser.add_argument("--layers", type=int, metavar="N", help="another depth than the architecture's own")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the file to write")
    add_json(parser)
    parser.set_defaults(run=_synthesize)


def _synthesize(options: argparse.Namespace) -> int:
    from perfsuite.workload.synthetic import write_synthetic

    model = _named(options.architecture)
    if options.layers is not None:
        model = model.with_layers(options.layers)
    write_synthetic(model, options.quant, options.output)
    size = options.output.stat().st_size
    give(
        Answer(
            parts=lambda: [f"{options.output}: {model.name}, {options.quant}, {format_bytes(size)}"],
            plain=lambda: {
                "file": str(options.output),
                "architecture": model.name,
                "quantization": options.quant,
                "size_bytes": size,
            },
        ),
        options,
    )
    return 0


def _named(name: str) -> Architecture | ModelShape:
    """Find a model by its name or its file."""
    path = Path(name)
    if path.suffix not in (".toml", ".json"):
        return find_model(name)
    spec = read_spec(path) if path.suffix == ".toml" else spec_of_config(path)
    if isinstance(spec, Architecture):
        return spec
    shape = spec.shape(path.stem if path.suffix == ".toml" else path.resolve().parent.name)
    if shape.tensors:
        return shape
    return with_engine_tensors(shape, cache_dir=user_cache(), wanted=spec.wanted, unwanted=spec.unwanted)
