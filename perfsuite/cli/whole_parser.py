"""The parser of the ``perfsuite`` command: of one subcommand where one is named, so that only its module is loaded."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from perfsuite import __version__
from perfsuite.cli.command_help import Commands, ParagraphFormatter, Parser
from perfsuite.cli.registry import COMMANDS, Purpose
from perfsuite.errors import meant

_ABOUT = """Find out whether LLM inference got slower on a device. 'pytest --device=host' measures and judges. These
commands look at what it measured, and do what needs no tests."""

#: What an exit code means unless a command's own help says otherwise.
EXITS = {
    0: "done",
    1: "found what the command looks for, such as a regression or a broken promise",
    2: "a mistake, or something is missing; one line says what",
    130: "interrupted by Ctrl-C",
    143: "ended by SIGTERM",
}

_EPILOG = "exit codes:\n{}\n\n'perfsuite COMMAND --help' shows options and examples.".format(
    "\n".join(f"  {code:<3}  {meaning}" for code, meaning in EXITS.items())
)


def parser_of(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command line, with the subcommand that it names; unknown ones are a usage error."""
    parser, commands = _bare_parser()
    name = next(iter(words), "-")
    found = [command for command in COMMANDS if command.name == name]
    if not found and not name.startswith("-"):
        told = meant(name, (command.name for command in COMMANDS)) or "; 'perfsuite --help' lists them"
        parser.error(f"no command {name!r}{told}")
    for command in found:
        command.load(commands)
    return parser


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser with all subcommands, for completion and for tests."""
    parser, commands = _bare_parser()
    for command in COMMANDS:
        command.load(commands)
    return parser


def _bare_parser() -> tuple[Parser, Commands]:
    parser = Parser(
        prog="perfsuite",
        usage="perfsuite [-h] [--version] COMMAND ...",
        description=f"{_ABOUT}\n\n{_listing()}",
        epilog=_EPILOG,
        formatter_class=ParagraphFormatter,
    )
    text = "show the versions that a measurement depends on"  # which `perfsuite.cli` itself does
    parser.add_argument("--version", action="version", version=f"perfsuite {__version__}", help=text)
    return parser, parser.add_subparsers(required=True, metavar="COMMAND", help=argparse.SUPPRESS, prog="perfsuite")


def _listing() -> str:
    """List the subcommands by what they are for."""
    width = max(len(command.name) for command in COMMANDS)
    blocks = {purpose: [f"{purpose.value}:"] for purpose in Purpose}
    for each in COMMANDS:
        blocks[each.purpose].append(f"  {each.name:{width}}  {each.summary}")
    return "\n\n".join(map("\n".join, blocks.values()))
