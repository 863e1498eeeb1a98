"""``perfsuite synthesize``."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfsuite.cli.answer import Answer, give
from perfsuite.cli.command_help import Commands, add_command
from perfsuite.cli.kept_folders import user_cache
from perfsuite.measure.model_tensors import with_engine_tensors
from perfsuite.units import format_bytes
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find_model
from perfsuite.workload.config_metadata import is_config, left_out, spec_of_config
from perfsuite.workload.model_shape import ModelShape, read_spec, shape_of


def add_parser(commands: Commands) -> None:
    """Add the subcommand."""
    add_command(
        commands,
        "synthesize",
        about="""
        It runs as fast as the real model; what it generates is meaningless. 'pytest --device=host --model=NAME' makes
        such files itself. A TOML file has 'architecture', a table [metadata] of GGUF keys without the prefix, and
        'wanted' for optional tensors.
        """,
        examples={
            "perfsuite synthesize smollm2-135m -o smollm2.gguf": "139 MB, Q8_0",
            "perfsuite synthesize tiny-gemma3 -o tiny.gguf": "the smallest Gemma 3",
        },
        see=("perfsuite architectures",),
        options=[
            ("architecture architecture", "model of the catalogue, tiny-ARCHITECTURE, config.json or TOML file"),
            ("--quant QUANT", "type of weights (default q8_0)", None, "q8_0"),
            ("--layers N", "number of layers (default: the architecture's)", int),
            ("-o --output FILE", "file to write", Path, {"required": True}),
        ],
        run=_synthesize,
    )


def _synthesize(options: argparse.Namespace) -> int:
    from perfsuite.workload.synthetic import write_synthetic

    model = _named(options.architecture)
    if options.layers is not None:
        model = model.with_layers(options.layers)
    write_synthetic(model, options.quant, options.output)
    size, n_parameters = options.output.stat().st_size, shape_of(model).n_parameters
    missing = left_out(Path(options.architecture))
    text = f"{options.output}: {model.name}, {n_parameters:,} parameters, {options.quant}, {format_bytes(size)}"
    plain = {
        "file": str(options.output),
        "architecture": model.name,
        "parameters": n_parameters,
        "left_out": missing,
        "quantization": options.quant,
        "size_bytes": size,
    }
    return give(Answer(parts=[text, *missing], plain=plain), options)


def _named(name: str) -> Architecture | ModelShape:
    path = Path(name)
    if path.suffix != ".toml" and not is_config(path):
        return find_model(name)
    spec = read_spec(path) if path.suffix == ".toml" else spec_of_config(path)
    if isinstance(spec, Architecture):
        return spec
    shape = spec.shape(path.stem if path.suffix == ".toml" else path.resolve().parent.name)
    if shape.tensors:
        return shape
    return with_engine_tensors(shape, cache_dir=user_cache(), wanted=spec.wanted, unwanted=spec.unwanted)
