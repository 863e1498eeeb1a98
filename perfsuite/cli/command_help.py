"""The parsers of the ``perfsuite`` command: what ``--help`` has, and how a subcommand and its options are added."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from perfsuite import __version__
from perfsuite.cli.registry import COMMANDS, Command, Purpose, summary_of
from perfsuite.errors import meant

#: What `add_subparsers` returns, to which each subcommand adds itself.
Commands: TypeAlias = "argparse._SubParsersAction[Parser]"

#: An option is not taken for another one that shares little more than its dashes.
_ALIKE_RATIO = 0.75


class ParagraphFormatter(argparse.RawDescriptionHelpFormatter):
    """Folds each paragraph of a description by itself, and leaves those with indented lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = textwrap.dedent(text).strip("\n").split("\n\n")
        return "\n\n".join(
            block if "\n " in block else textwrap.fill(" ".join(block.split()), max(width, 20)) for block in blocks
        )


class Parser(argparse.ArgumentParser):
    """A parser, and by it those of its subcommands, that asks what a mistyped choice or option was meant to be."""

    #: What takes all that stands behind ``--``.
    behind_dashes: str | None = None

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a help or a usage; argparse itself hides that nothing takes it."""
        print(message, end="", file=file or sys.stderr)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            told = meant(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{told}") from None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse what begins as an option and is almost one of this parser's; others are for the caller to refuse.

        Where `behind_dashes` is set, all that stands behind ``--`` is the last of the words called so: argparse itself
        gives them to no positional once an option has followed the first one.
        """
        words = sys.argv[1:] if args is None else list(args)
        at = words.index("--") if self.behind_dashes and "--" in words else len(words)
        found, unknown = super().parse_known_args(words[:at], namespace)
        if self.behind_dashes:
            setattr(found, self.behind_dashes, [*getattr(found, self.behind_dashes), *words[at + 1 :]])
        names = [each.partition("=")[0] for each in unknown if each.startswith("--")]
        text = "".join(meant(name, self._option_string_actions, least_ratio=_ALIKE_RATIO) for name in names[:1])
        if text:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{text}")
        return found, unknown


#: An option as `add_option` takes it: its names and value, what it is for, and its type and default where it has them.
Row: TypeAlias = tuple[Any, ...]


def add_command(
    commands: Commands | None,
    name: str,
    *,
    summary: str = "",
    about: str = "",
    examples: Mapping[str, str] | None = None,
    writes: str = "",
    exits: Mapping[int, str] | None = None,
    see: Sequence[str] = (),
    usage: str | None = None,
    allow_abbrev: bool = True,
    options: Sequence[Row] = (),
    run: Callable[[argparse.Namespace], int] | None = None,
) -> Parser:
    """Add a subcommand, or an action of one, whose help says what it does, and how to use it.

    A subcommand's `summary` is that of the registry. Without `commands` it is a word in the place of a program, such as
    ``perfsuite trace view``. `about` holds paragraphs, separated by empty lines. `examples` says what each command line
    is for; the parser takes them all. `writes` names files. `exits` says what exit codes mean that differ from those of
    every command, which ``perfsuite --help`` lists. `see` names pages and other subcommands. `options` are rows of
    `add_option`; what has a `run` answers by `perfsuite.cli.answer.give`, with ``--json`` last.
    """
    summary = summary or summary_of(name)
    lines = "\n".join(f"  # {why}\n  {line}" for line, why in (examples or {}).items())
    parts = [
        f"examples:\n{lines}" if examples else "",
        f"writes: {writes}" if writes else "",
        _exits_text(exits) if exits else "",
        f"see also: {', '.join(see)}" if see else "",
    ]
    settings: dict[str, Any] = {
        "description": f"{summary[0].upper()}{summary[1:]}.\n\n{textwrap.dedent(about).strip()}".strip(),
        "epilog": "\n\n".join(filter(None, parts)),
        "formatter_class": ParagraphFormatter,
        "usage": usage,
        "allow_abbrev": allow_abbrev,
    }
    parser = Parser(prog=name, **settings) if commands is None else commands.add_parser(name, help=summary, **settings)
    add_options(parser, *options)
    if run is not None:
        add_run(parser, run)
    return parser


def add_run(parser: Parser, run: Callable[[argparse.Namespace], int]) -> None:
    """Say what a command runs, and let it take ``--json``."""
    add_json(parser)
    parser.set_defaults(run=run)


def add_options(to: argparse._ActionsContainer, *rows: Row) -> None:
    """Add an option a row: what `add_option` takes of it, the last being a dict of settings where it has some."""
    for row in rows:
        settings = row[-1] if isinstance(row[-1], dict) else {}
        add_option(to, *(row[:-1] if settings else row), **settings)


def add_option(
    to: argparse._ActionsContainer,
    named: str,
    text: str,
    kind: Callable[[str], Any] | None = None,
    default: Any = None,
    **settings: Any,
) -> None:
    """Add an option that is `named` as helps show it, with further settings of argparse.

    ``-o --output FILE`` takes a value, ``--form {json,sql}`` one of these, ``--force`` none. ``device NAME`` is a
    positional argument, of which ``device [NAME]`` may be left out and ``runs RUN...`` takes several.
    """
    *names, value = named.split()
    if value.startswith("-"):
        to.add_argument(*names, value, action="store_true", help=text, **settings)
        return
    if value.startswith("["):
        settings["nargs"] = "?"
    elif value.endswith("..."):
        settings["nargs"] = "+"
    if value.startswith("{"):
        settings["choices"] = tuple(value.strip("{}").split(","))
    else:
        settings["metavar"] = value.strip("[.]")
    if kind is not None:
        settings["type"] = kind
    to.add_argument(*names, default=default, help=text, **settings)


def add_pytest_options(parser: Parser, to: argparse._ActionsContainer | None = None) -> None:
    """Add the words behind ``--``, which are pytest's."""
    add_option(to or parser, "pytest_options OPTION", "options of pytest, after '--'", nargs="*")
    parser.behind_dashes = "pytest_options"


def add_json(options: argparse._ActionsContainer, *, text: str = "print JSON") -> None:
    """Add ``--json``, of every subcommand that answers; `perfsuite.cli.answer.give` prints what it asks for."""
    options.add_argument("--json", action="store_true", help=text)


def add_quiet(options: argparse._ActionsContainer) -> None:
    """Add ``--quiet``, for subcommands that report progress or remarks on standard error."""
    options.add_argument("-q", "--quiet", action="store_true", help="print the answer alone")


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


def _exits_text(exits: Mapping[int, str]) -> str:
    return "exit codes:\n" + "\n".join(f"  {code:<3}  {meaning}" for code, meaning in sorted(exits.items()))


def parser_of(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command line, with only the subcommand that it names; unknown ones are a usage error."""
    name, known = next(iter(words), "-"), [command.name for command in COMMANDS]
    parser = _parser([command for command in COMMANDS if command.name == name])
    if name not in known and not name.startswith("-"):
        told = meant(name, known) or "; 'perfsuite --help' lists them"
        parser.error(f"no command {name!r}{told}")
    return parser


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser with all subcommands, for completion and for tests."""
    return _parser(COMMANDS)


def _parser(loaded: Sequence[Command]) -> Parser:
    width = max(len(command.name) for command in COMMANDS)
    blocks = {purpose: [f"{purpose.value}:"] for purpose in Purpose}
    for each in COMMANDS:
        blocks[each.purpose].append(f"  {each.name:{width}}  {each.summary}")
    listing = "\n\n".join(map("\n".join, blocks.values()))
    parser = Parser(
        prog="perfsuite",
        usage="perfsuite [-h] [--version] COMMAND ...",
        description=f"{_ABOUT}\n\n{listing}",
        epilog=f"{_exits_text(EXITS)}\n\n'perfsuite COMMAND --help' shows options and examples.",
        formatter_class=ParagraphFormatter,
    )
    text = "show the versions that a measurement depends on"  # which `perfsuite.cli` itself does
    parser.add_argument("--version", action="version", version=f"perfsuite {__version__}", help=text)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", help=argparse.SUPPRESS, prog="perfsuite")
    for each in loaded:
        import_module(f"perfsuite.{each.module}").add_parser(commands)
    return parser
