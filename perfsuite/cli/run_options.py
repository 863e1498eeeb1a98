"""Options that several subcommands share, each with the same words."""

from __future__ import annotations

import argparse
from typing import TypeAlias

from perfsuite.cli.command_help import Row, add_json, add_quiet
from perfsuite.errors import PerfsuiteError
from perfsuite.option_table import DEFAULT_MODEL, DEFAULT_SCENARIO, command_settings

#: What a parser and a group of options have in common.
Options: TypeAlias = "argparse.ArgumentParser | argparse._ArgumentGroup"

#: What a bundle is made of, for whoever makes one.
BUNDLE_OPTIONS: tuple[Row, ...] = (
    ("--llama FOLDER|VERSION", "checkout of llama.cpp, or release of llama-cpp-python (default: the installed one)"),
    ("--processor NAME", "features of the processor, such as armv8.2-a+dotprod or x86-64-v3"),
    ("--compiler {gcc,zig}", "compiler (default gcc, or zig if gcc's programs would not run)"),
)

#: What commands take where nothing is said; other options have pytest's default.
_DEFAULTS = {"device": "host", "model": DEFAULT_MODEL, "scenario": DEFAULT_SCENARIO}


def add_shared(options: Options, *names: str) -> None:
    """Add options of pytest by their names; ``scenario=silo`` sets another default, ``model=`` none."""
    for each in names:
        name, has_own, own = each.partition("=")
        options.add_argument(f"--{name}", **command_settings(name, own if has_own else _DEFAULTS.get(name)))


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
