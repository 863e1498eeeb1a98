"""What ``--help`` of every subcommand has: its purpose, examples, files, exit codes and pages."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from perfsuite.cli.registry import summary_of
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
        told = "".join(meant(name, self._option_string_actions, least_ratio=_ALIKE_RATIO) for name in names[:1])
        if told:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{told}")
        return found, unknown


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
) -> Parser:
    """Add a subcommand, or an action of one, whose help says what it does, and how to use it.

    A subcommand's `summary` is that of the registry. Without `commands` it is a word in the place of a program, such as
    ``perfsuite trace view``. `about` holds paragraphs, separated by empty lines. `examples` says what each command line
    is for; the parser takes them all. `writes` names files. `exits` says what exit codes mean that differ from those of
    every command, which ``perfsuite --help`` lists. `see` names pages and other subcommands.
    """
    summary = summary or summary_of(name)
    lines = "\n".join(f"  # {why}\n  {line}" for line, why in (examples or {}).items())
    codes = "\n".join(f"  {code:<3}  {meaning}" for code, meaning in sorted((exits or {}).items()))
    parts = [
        f"examples:\n{lines}" if examples else "",
        f"writes: {writes}" if writes else "",
        f"exit codes:\n{codes}" if exits else "",
        f"see also: {', '.join(see)}" if see else "",
    ]
    settings: dict[str, Any] = {
        "description": f"{summary[0].upper()}{summary[1:]}.\n\n{textwrap.dedent(about).strip()}".strip(),
        "epilog": "\n\n".join(filter(None, parts)),
        "formatter_class": ParagraphFormatter,
        "usage": usage,
        "allow_abbrev": allow_abbrev,
    }
    return Parser(prog=name, **settings) if commands is None else commands.add_parser(name, help=summary, **settings)


def add_json(options: argparse._ActionsContainer, *, text: str = "print JSON") -> None:
    """Add ``--json``, of every subcommand that answers; `perfsuite.cli.answer.give` prints what it asks for."""
    options.add_argument("--json", action="store_true", help=text)


def add_quiet(options: argparse._ActionsContainer) -> None:
    """Add ``--quiet``, for subcommands that report progress or remarks on standard error."""
    options.add_argument("-q", "--quiet", action="store_true", help="print the answer alone")
