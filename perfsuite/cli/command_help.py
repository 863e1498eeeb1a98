"""What ``--help`` of every subcommand has: its purpose, examples, files, exit codes and pages."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from perfsuite.cli.registry import summary_of
from perfsuite.errors import meant

#: What `add_subparsers` returns, to which each subcommand adds itself.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

#: An option is not taken for another one that shares little more than its dashes.
_ALIKE_RATIO = 0.75


class ParagraphFormatter(argparse.RawDescriptionHelpFormatter):
    """Folds each paragraph of a description by itself, and leaves lines that are indented as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = textwrap.dedent(text).strip("\n").split("\n\n")
        return "\n\n".join(textwrap.indent(_filled(block, width - len(indent)), indent) for block in blocks)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Fold the help of an option, and break no name at its dashes."""
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False, break_long_words=False)


class Parser(argparse.ArgumentParser):
    """A parser, and by it those of its subcommands, that asks what a mistyped choice or option was meant to be."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            told = meant(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{told}") from None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse what begins as an option and is almost one of this parser's; others are for the caller to refuse."""
        found, unknown = super().parse_known_args(args, namespace)
        names = [each.partition("=")[0] for each in unknown if each.startswith("--")]
        told = "".join(meant(name, self._option_string_actions, least_ratio=_ALIKE_RATIO) for name in names[:1])
        if told:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{told}")
        return found, unknown


def _filled(block: str, width: int) -> str:
    """Fold the lines of a block that belong together; an indented line is one of its own."""
    paragraphs: list[list[str]] = [[]]
    for line in block.splitlines():
        if line.startswith(" ") or (paragraphs[-1] and paragraphs[-1][-1].startswith(" ")):
            paragraphs.append([])
        paragraphs[-1].append(line)
    return "\n".join(_folded(lines, width) for lines in paragraphs if lines)


def _folded(lines: Sequence[str], width: int) -> str:
    if lines[0].lstrip().startswith("perfsuite ") and lines[0].startswith(" "):
        return lines[0]  # a command line is copied whole
    hanging = " " * _hanging(lines[0])
    return textwrap.fill(
        " ".join(lines), max(width, 20), subsequent_indent=hanging, break_on_hyphens=False, break_long_words=False
    )


def _hanging(line: str) -> int:
    """Return how far the lines after an indented one are indented: as its second column, where it has two."""
    found = re.match(r" +\S+(?: \S+)* {2,}| +", line)
    return 0 if found is None else found.end() + (2 if found[0].isspace() else 0)


def add_command(
    commands: Commands,
    name: str,
    *,
    about: str = "",
    examples: Mapping[str, str],
    writes: str = "",
    exits: Mapping[int, str] | None = None,
    see: Sequence[str] = (),
    usage: str | None = None,
) -> argparse.ArgumentParser:
    """Add a subcommand whose help says what it does, and how to use it.

    `about` holds paragraphs, separated by empty lines. `examples` says what each command line is for; the parser takes
    them all. `writes` names files. `exits` says what exit codes mean that differ from those of every command, which
    ``perfsuite --help`` lists. `see` names pages and other subcommands.
    """
    summary = summary_of(name)
    told = _help(summary, about, examples, writes, exits, see)
    return commands.add_parser(name, help=summary, usage=usage, **told)


def add_action(
    actions: Commands,
    name: str,
    *,
    summary: str,
    about: str = "",
    examples: Mapping[str, str] | None = None,
    writes: str = "",
    exits: Mapping[int, str] | None = None,
    allow_abbrev: bool = True,
) -> argparse.ArgumentParser:
    """Add an action of a subcommand, such as ``baseline approve``; as `add_command`."""
    told = _help(summary, about, examples or {}, writes, exits, ())
    return actions.add_parser(name, help=summary, allow_abbrev=allow_abbrev, **told)


def word_parser(
    prog: str,
    *,
    summary: str,
    about: str = "",
    examples: Mapping[str, str],
    writes: str = "",
    exits: Mapping[int, str] | None = None,
    see: Sequence[str] = ("docs/tracing.md",),
) -> argparse.ArgumentParser:
    """Return the parser of a word in the place of a program, such as ``trace view``; as `add_command`."""
    return Parser(prog=prog, **_help(summary, about, examples, writes, exits, see))


def add_json(options: argparse._ActionsContainer, *, text: str = "print JSON") -> None:
    """Add ``--json``, of every subcommand that answers; `perfsuite.cli.answer.give` prints what it asks for."""
    options.add_argument("--json", action="store_true", help=text)


def add_quiet(options: argparse._ActionsContainer) -> None:
    """Add ``--quiet``, for subcommands that report progress or remarks on standard error."""
    options.add_argument("-q", "--quiet", action="store_true", help="print the answer alone")


def _help(
    summary: str,
    about: str,
    examples: Mapping[str, str],
    writes: str,
    exits: Mapping[int, str] | None,
    see: Sequence[str],
) -> dict[str, Any]:
    """Return the arguments of a parser that are its help."""
    lines = "\n".join(f"  # {why}\n  {line}" for line, why in examples.items())
    codes = "\n".join(f"  {code:<3}  {meaning}" for code, meaning in sorted((exits or {}).items()))
    parts = [
        f"examples:\n{lines}" if examples else "",
        f"writes: {writes}" if writes else "",
        f"exit codes:\n{codes}" if exits else "",
        f"see also: {', '.join(see)}" if see else "",
    ]
    return {
        "description": f"{summary[0].upper()}{summary[1:]}.\n\n{textwrap.dedent(about).strip()}".strip(),
        "epilog": "\n\n".join(filter(None, parts)),
        "formatter_class": ParagraphFormatter,
    }


def take_behind_dashes(parser: argparse.ArgumentParser, name: str) -> None:
    """Let all that stands behind ``--`` be the last of the words called `name`, whatever stands before it.

    argparse itself gives them to no positional once an option has followed the first one.
    """
    known = parser.parse_known_args

    def parse(args: Sequence[str] | None = None, namespace: Any = None) -> tuple[argparse.Namespace, list[str]]:
        words = list(args or ())
        at = words.index("--") if "--" in words else len(words)
        found, unknown = known(words[:at], namespace)
        setattr(found, name, [*getattr(found, name), *words[at + 1 :]])
        return found, unknown

    parser.parse_known_args = parse  # type: ignore[method-assign, assignment]
