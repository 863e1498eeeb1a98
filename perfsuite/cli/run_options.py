"""Options that several subcommands share, each with the same words."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, TypeAlias

from perfsuite.cli.command_help import add_json, add_quiet
from perfsuite.errors import PerfsuiteError
from perfsuite.workload.scenario import scenario_names

#: What a parser and a group of options have in common.
Options: TypeAlias = "argparse.ArgumentParser | argparse._ArgumentGroup"

#: The file that is run where none is named: small enough for any device.
DEFAULT_MODEL = "smollm2-135m-q8_0"


#: By name, what several subcommands take; the default follows the help.
_SHARED: Mapping[str, Mapping[str, Any]] = {
    "device": {"default": "host", "metavar": "NAME", "help": "device profile"},
    "model": {
        "default": DEFAULT_MODEL,
        "metavar": "PATH|NAME",
        "help": "GGUF file, or ARCHITECTURE-QUANTISATION of the catalogue",
    },
    "scenario": {
        "default": "siso",
        "metavar": "NAME",
        "help": f"{', '.join(scenario_names())}, or p<prompt>-g<generated> in tokens",
    },
    "ubatch-size": {
        "type": int,
        "metavar": "N",
        "help": "largest batch that is computed at once, tokens (default 512)",
    },
    "cache-type-k": {"metavar": "TYPE", "help": "type of keys in the KV cache (default f16)"},
    "cache-type-v": {"metavar": "TYPE", "help": "type of values in the KV cache (default f16)"},
    "lora-rank": {
        "type": int,
        "metavar": "N",
        "help": "rank of a synthetic LoRA adapter on every layer, at most 65536",
    },
    "parallel": {"type": int, "metavar": "N", "help": "sequences generated in one batch, at most 256"},
    "draft": {
        "metavar": "MODEL|ngram[:TOKENS[:ACCEPTANCE]]",
        "help": "speculative decoding with a draft model or n-grams",
    },
    "mmproj": {
        "metavar": "PATH|NAME",
        "help": "projector of a vision model, which encodes an image first",
    },
    "threads": {"type": int, "metavar": "N", "help": "threads (default: physical cores)"},
    "backend": {"choices": ("cpu", "opencl"), "default": "cpu", "help": "backend of llama.cpp"},
    "opencl-platform": {"metavar": "NAME", "help": "part of the OpenCL platform's name"},
    "flash-attn": {"choices": ("on", "off"), "help": "flash attention (default: on; off for OpenCL on a CPU)"},
}


def add_shared(options: Options, *names: str) -> None:
    """Add options by their names; ``scenario=silo`` sets another default, ``model=`` none."""
    for each in names:
        name, has_own, own = each.partition("=")
        keywords = {**_SHARED[name], **({"default": own or None} if has_own else {})}
        if keywords.get("default"):
            keywords["help"] = f"{keywords['help']} (default {keywords['default']})"
        options.add_argument(f"--{name}", **keywords)


def add_subject(parser: argparse.ArgumentParser, *names: str) -> argparse._ArgumentGroup:
    """Add the options of device and workload, as `add_shared`; return their group."""
    group = parser.add_argument_group("device and workload")
    add_shared(group, *names)
    return group


def effort_group(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Return the group of options that say how much to measure."""
    return parser.add_argument_group("effort")


def answer_group(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Return the group of options for the output."""
    return parser.add_argument_group("output")


def check_least(options: argparse.Namespace, *names: str, least: int = 1) -> None:
    """Refuse numbers that were given and measure nothing."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value < least:
            raise PerfsuiteError(f"--{name}={value}: expected {least} or more")


def add_answer(parser: argparse.ArgumentParser, *, json_help: str = "print JSON") -> argparse._ArgumentGroup:
    """Add ``--json`` and ``--quiet`` to the group of the output; return that."""
    group = answer_group(parser)
    add_json(group, text=json_help)
    add_quiet(group)
    return group
