"""What the parsers of the commands say, as records that a page can be written from."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from perfsuite.cli.command_help import whole_parser
from perfsuite.cli.registry import COMMANDS, Purpose
from perfsuite.experiments.tracing.command import WORDS, word_parser

_DEFAULT = re.compile(r" \(default:? ((?:[^()]|\([^()]*\))+)\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option or an operand."""

    #: As it is written, such as ``-o, --output``, and the word for its value.
    names: str
    value: str
    #: What it does, and what it is where it is left out.
    does: str
    default: str

    @property
    def is_operand(self) -> bool:
        """Whether it has no name on the command line."""
        return not self.names

    @property
    def written(self) -> str:
        """Return the option with its value."""
        return f"{self.names} {self.value}".strip()

    @property
    def key(self) -> tuple[str, str]:
        """Return what is the same where two commands have the same option."""
        return self.names.split(" ")[-1] or self.value, self.does

    @property
    def help(self) -> str:
        """Return what it does, with the default."""
        if not self.default:
            return self.does
        return f"{self.does} (default{':' if ' ' in self.default else ''} {self.default})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandText:
    """What the help of a command or of one of its actions says."""

    name: str
    purpose: Purpose
    usage: str
    #: The first sentence, then the other paragraphs.
    summary: str
    about: tuple[str, ...]
    options: tuple[Option, ...]
    #: Lines of a shell, with comments.
    examples: tuple[str, ...]
    writes: str
    exits: tuple[tuple[str, str], ...]
    see: tuple[str, ...]
    actions: tuple[CommandText, ...]


def command_texts() -> tuple[CommandText, ...]:
    """Return all commands, in the order of ``perfsuite --help``."""
    choices = _subparsers(whole_parser())
    return tuple(_command(f"perfsuite {each.name}", choices[each.name], each.purpose) for each in COMMANDS)


def _command(name: str, parser: argparse.ArgumentParser, purpose: Purpose) -> CommandText:
    word = name.split(" ")[1]
    apart = [word_parser(each) for each in WORDS] if word == "trace" else []
    nested = {**_subparsers(parser), **{each.prog.split(" ", 2)[2]: each for each in apart}}
    actions = (leaf for action, each in nested.items() for leaf in _leaves(f"{name} {action}", each, purpose))
    return _text(name, parser, purpose, tuple(actions))


def _leaves(name: str, parser: argparse.ArgumentParser, purpose: Purpose) -> Iterator[CommandText]:
    """Yield an action, or those below it."""
    nested = _subparsers(parser)
    if not nested:
        yield _text(name, parser, purpose, ())
    for word, each in nested.items():
        yield from _leaves(f"{name} {word}", each, purpose)


def _text(
    name: str, parser: argparse.ArgumentParser, purpose: Purpose, actions: tuple[CommandText, ...]
) -> CommandText:
    summary, *about = textwrap.dedent(parser.description or "").strip().split("\n\n")
    blocks = dict(re.findall(r"^([a-z ]+):[ \n](.+?)(?=\n\n|\Z)", parser.epilog or "", re.DOTALL | re.MULTILINE))
    return CommandText(
        name=name,
        purpose=purpose,
        usage=_usage(parser, name),
        summary=" ".join(summary.split()),
        about=tuple(" ".join(each.split()) for each in about),
        options=tuple(_options(parser)),
        examples=tuple(textwrap.dedent(blocks.get("examples", "")).replace("%%", "%").splitlines()),
        writes=blocks.get("writes", ""),
        exits=tuple(tuple(line.split(maxsplit=1)) for line in blocks.get("exit codes", "").splitlines()),
        see=tuple(blocks["see also"].split(", ")) if "see also" in blocks else (),
        actions=actions,
    )


def _usage(parser: argparse.ArgumentParser, name: str) -> str:
    if parser.usage:
        return textwrap.dedent(str(parser.usage)).replace("%(prog)s", name)
    options = ["[options]"] if any(each.option_strings for each in _shown(parser)) else []
    operands = [_counted(each) for each in _shown(parser) if not each.option_strings]
    nested = [f"{each.metavar} ..." for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return " ".join([name, *options, *operands, *nested])


def _counted(action: argparse.Action) -> str:
    """Return an operand with how many of it there may be."""
    name = _value(action)
    by_count = {
        "?": f"[{name}]",
        "*": f"[{name} ...]",
        "+": f"{name} [{name} ...]",
        argparse.REMAINDER: f"[{name} ...]",
    }
    return by_count.get(str(action.nargs), name)


def _shown(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return what a parser takes, without ``--help`` and its actions."""
    hidden = (argparse._HelpAction, argparse._SubParsersAction)
    return [each for each in parser._actions if not isinstance(each, hidden) and each.help != argparse.SUPPRESS]


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for action in _shown(parser):
        told = " ".join((action.help or "").split()) % {**vars(action), "prog": ""}
        yield option(", ".join(action.option_strings), _value(action) if action.nargs != 0 else "", told)


def option(names: str, value: str, told: str) -> Option:
    """Return an option whose help ends with the default, where it has one."""
    default = _DEFAULT.search(told)
    does = told[: default.start()] if default else told
    return Option(names=names, value=value, does=does, default=default[1] if default else "")


def _value(action: argparse.Action) -> str:
    told = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest)
    value = str(told[0] if isinstance(told, tuple) else told)
    return value.upper() if action.option_strings and not (action.metavar or action.choices) else value


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next((dict(each.choices) for each in parser._actions if isinstance(each, argparse._SubParsersAction)), {})
