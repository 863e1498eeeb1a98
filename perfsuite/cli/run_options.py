"""Options that subcommands which run something share, each with the same words."""

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


#: By name, what several subcommands take; a default is told behind the help.
_SHARED: Mapping[str, Mapping[str, Any]] = {
    "device": {"default": "host", "metavar": "NAME", "help": "device profile"},
    "model": {
        "default": DEFAULT_MODEL,
        "metavar": "PATH|NAME",
        "help": "a GGUF file, or ARCHITECTURE-QUANTISATION of the catalogue",
    },
    "scenario": {
        "default": "siso",
        "metavar": "NAME",
        "help": f"{', '.join(scenario_names())}, or p<prompt>-g<generated> in tokens",
    },
    "ubatch-size": {"type": int, "metavar": "N", "help": "tokens that are evaluated at once (default 512)"},
    "cache-type-k": {"metavar": "TYPE", "help": "type of the keys in the cache (default f16)"},
    "cache-type-v": {"metavar": "TYPE", "help": "type of the values in the cache (default f16)"},
    "lora-rank": {"type": int, "metavar": "N", "help": "rank of a synthetic LoRA adapter on the layers' matrices"},
    "parallel": {"type": int, "metavar": "N", "help": "sequences that are generated side by side"},
    "draft": {"metavar": "MODEL|ngram[:TOKENS[:ACCEPTANCE]]", "help": "speculative decoding"},
    "mmproj": {
        "metavar": "PATH|NAME",
        "help": "projector of a vision model, which encodes an image before each prompt",
    },
    "threads": {"type": int, "metavar": "N", "help": "threads of the engine (default: physical cores)"},
    "backend": {"choices": ("cpu", "opencl"), "default": "cpu", "help": "backend of llama.cpp"},
    "opencl-platform": {"metavar": "NAME", "help": "OpenCL platform, by a part of its name"},
    "flash-attn": {"choices": ("on", "off"), "help": "default on; off where the device is a processor"},
}


def add_shared(options: Options, *names: str) -> None:
    """Add options by their names; ``scenario=silo`` has that default in the place of the usual one, ``model=`` none."""
    for each in names:
        name, has_own, own = each.partition("=")
        keywords = {**_SHARED[name], **({"default": own or None} if has_own else {})}
        if keywords.get("default"):
            keywords["help"] = f"{keywords['help']} (default {keywords['default']})"
        options.add_argument(f"--{name}", **keywords)


def add_subject(parser: argparse.ArgumentParser, *names: str) -> argparse._ArgumentGroup:
    """Add what says on what something is measured, as `add_shared`; return the group."""
    group = parser.add_argument_group("what is measured, and where")
    add_shared(group, *names)
    return group


def effort_group(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Return the group of what says how much is measured."""
    return parser.add_argument_group("how much is measured")


def answer_group(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Return the group of what says how the answer is given."""
    return parser.add_argument_group("the answer")


def check_least(options: argparse.Namespace, *names: str, least: int = 1) -> None:
    """Refuse numbers that were given and measure nothing."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value < least:
            raise PerfsuiteError(f"--{name}={value}: expected {least} or more")


def add_answer(parser: argparse.ArgumentParser, *, json_help: str = "print JSON") -> argparse._ArgumentGroup:
    """Add ``--json`` and ``--quiet`` in the group of the answer, and return that."""
    group = answer_group(parser)
    add_json(group, text=json_help)
    add_quiet(group)
    return group
