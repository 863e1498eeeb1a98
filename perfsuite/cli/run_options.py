"""Options that subcommands which run something share, each with the same words."""

from __future__ import annotations

import argparse
from typing import TypeAlias

from perfsuite.cli.command_help import add_quiet
from perfsuite.errors import PerfsuiteError
from perfsuite.workload.scenario import scenario_names

#: What a parser and a group of options have in common.
Options: TypeAlias = "argparse.ArgumentParser | argparse._ArgumentGroup"

#: The file that is run where none is named: small enough for any device.
DEFAULT_MODEL = "smollm2-135m-q8_0"


def subject_group(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Return the group of what says on what something is measured."""
    return parser.add_argument_group("what is measured, and where")


def effort_group(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Return the group of what says how much is measured."""
    return parser.add_argument_group("how much is measured")


def answer_group(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Return the group of what says how the answer is given."""
    return parser.add_argument_group("the answer")


def add_device(options: Options) -> None:
    """Add ``--device``."""
    options.add_argument("--device", default="host", metavar="NAME", help="device profile (default host)")


def add_model(options: Options, *, default: str | None = DEFAULT_MODEL) -> None:
    """Add ``--model``."""
    text = "a GGUF file, or ARCHITECTURE-QUANTISATION of the catalogue"
    text += "" if default is None else f" (default {default})"
    options.add_argument("--model", default=default, metavar="PATH|NAME", help=text)


def add_scenario(options: Options, *, default: str) -> None:
    """Add ``--scenario``."""
    text = f"{', '.join(scenario_names())}, or p<prompt>-g<generated> in tokens (default {default})"
    options.add_argument("--scenario", default=default, metavar="NAME", help=text)


def add_threads(options: Options) -> None:
    """Add ``--threads``."""
    options.add_argument("--threads", type=int, metavar="N", help="threads of the engine (default: physical cores)")


def check_least(options: argparse.Namespace, *names: str, least: int = 1) -> None:
    """Refuse numbers that were given and measure nothing."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value < least:
            raise PerfsuiteError(f"--{name}={value}: expected {least} or more")


def add_backend(options: Options) -> None:
    """Add ``--backend``, and what chooses its OpenCL device."""
    options.add_argument(
        "--backend", choices=("cpu", "opencl"), default="cpu", help="backend of llama.cpp (default cpu)"
    )
    add_platform(options)


def add_platform(options: Options) -> None:
    """Add ``--opencl-platform``."""
    options.add_argument("--opencl-platform", metavar="NAME", help="OpenCL platform, by a part of its name")


def add_flash_attn(options: Options) -> None:
    """Add ``--flash-attn``."""
    options.add_argument("--flash-attn", choices=("on", "off"), help="default on; off where the device is a processor")


def add_answer(parser: argparse.ArgumentParser, *, json_help: str = "print JSON") -> argparse._ArgumentGroup:
    """Add ``--json`` and ``--quiet`` in the group of the answer, and return that."""
    group = answer_group(parser)
    group.add_argument("--json", action="store_true", help=json_help)
    add_quiet(group)
    return group
