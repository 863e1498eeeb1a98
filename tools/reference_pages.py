#!/usr/bin/env python
"""Writes docs/reference/options.md and commands.md from the parsers, so that they say what the parsers take.

python tools/reference_pages.py           write the pages
python tools/reference_pages.py --check   exit code 1 where a page is not what would be written
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from _pytest.config import get_config

from perfsuite.cli.registry import COMMANDS, Command, Purpose
from perfsuite.cli.whole_parser import whole_parser

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"

_WRITTEN = "<!-- Written by tools/reference_pages.py from the parsers; change those, not this page. -->"

#: Subcommands that take the words behind them by themselves.
_OWN = {"trace": ("view", "agree")}

_OPTIONS = """# Options of pytest

{written}

Options that `pytest` has where perfsuite is installed; `pytest --help` lists them under *perfsuite*. Nothing is
measured without `--device`. Write those whose value is a path with an equals sign (`--perf-dir=DIR`): pytest takes an
existing path after a space for the folder to begin in.

{table}

## The ini file

In `pyproject.toml` under `[tool.pytest.ini_options]`, or in `pytest.ini` under `[pytest]`. `-o NAME=VALUE` on the
command line overrides them for one run.

{ini}
"""

_COMMANDS = """# Commands

{written}

`perfsuite COMMAND --help` says the same on the terminal. Each takes `-h` and `--help`; `perfsuite --version` tells the
versions that a measurement depends on.

{listing}

{commands}"""


def pages() -> dict[Path, str]:
    """Return the pages, by path."""
    return {FOLDER / "options.md": options_page(), FOLDER / "commands.md": commands_page()}


def options_page() -> str:
    """Return the page of pytest's options and ini values."""
    config = get_config()
    config.pluginmanager.load_setuptools_entrypoints("pytest11")
    (group,) = [each for each in config._parser._groups if each.name == "perfsuite"]
    rows = [_row([*each.names()], each.attrs()) for each in group.options]
    ini = [
        f"| `{name}` | {_cell(told[0])} |" for name, told in config._parser._inidict.items() if name.startswith("perf_")
    ]
    return _OPTIONS.format(written=_WRITTEN, table=_table(("option", ""), rows), ini=_table(("value", ""), sorted(ini)))


def commands_page() -> str:
    """Return the page of the command and all its subcommands."""
    choices = _subparsers(whole_parser())
    parts = [
        line
        for purpose in Purpose
        for line in (
            f"## {purpose.value}\n",
            *(_command(choices, each) for each in COMMANDS if each.purpose is purpose),
        )
    ]
    listing = [f"| [`{each.name}`](#perfsuite-{each.name}) | {_cell(each.summary)} |" for each in COMMANDS]
    return _COMMANDS.format(
        written=_WRITTEN, listing=_table(("command", ""), listing), commands="\n".join(parts).rstrip() + "\n"
    )


def _command(choices: dict[str, argparse.ArgumentParser], command: Command) -> str:
    parts = list(_section(choices[command.name], f"perfsuite {command.name}", 3))
    for word in _OWN.get(command.name, ()):
        parser = import_module(f"{command.module}_{word}")._parser()
        parts += _section(parser, f"perfsuite {command.name} {word}", 4)
    return "\n".join(parts)


def _section(parser: argparse.ArgumentParser, name: str, depth: int) -> Iterator[str]:
    """Yield the parts of a parser's section, then those of its subcommands."""
    nested = _subparsers(parser)
    yield f"{'#' * min(depth, 5)} {name}\n"
    yield f"```text\n{_usage(parser, name, bool(nested))}\n```\n"
    if parser.description:
        yield f"{_prose(parser.description)}\n"
    for title, actions in _groups(parser):
        if rows := [_row(list(each.option_strings) or [_operand(each)], vars(each), each) for each in actions]:
            yield f"{_table((title, ''), rows)}\n"
    if parser.epilog:
        yield f"```text\n{textwrap.dedent(parser.epilog).strip()}\n```\n"
    for word, each in nested.items():
        yield from _section(each, f"{name} {word}", depth + 1)


def _groups(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[argparse.Action]]]:
    """Yield what a parser takes, by its groups; argparse's own two are one."""
    hidden = (argparse._HelpAction, argparse._SubParsersAction)
    first, second, *others = parser._action_groups
    both = [*first._group_actions, *second._group_actions]
    for title, actions in (("argument", both), *((str(each.title), each._group_actions) for each in others)):
        yield title, [each for each in actions if not isinstance(each, hidden) and each.help != argparse.SUPPRESS]


def _usage(parser: argparse.ArgumentParser, name: str, has_nested: bool) -> str:
    if parser.usage:
        return textwrap.dedent(str(parser.usage)).replace("%(prog)s", name)
    operands = [_counted(each) for each in parser._actions if not each.option_strings and not _is_nested(each)]
    return " ".join([name, "[options]", *operands, *(["COMMAND ..."] if has_nested else [])])


def _counted(action: argparse.Action) -> str:
    """Return an operand with how many of it there may be."""
    name = _operand(action)
    by_count = {
        "?": f"[{name}]",
        "*": f"[{name} ...]",
        "+": f"{name} [{name} ...]",
        argparse.REMAINDER: f"[{name} ...]",
    }
    return by_count.get(str(action.nargs), name)


def _operand(action: argparse.Action) -> str:
    told = action.metavar or (",".join(map(str, action.choices)) if action.choices else action.dest)
    return str(told[0] if isinstance(told, tuple) else told)


def _row(names: list[str], told: dict[str, Any], action: argparse.Action | None = None) -> str:
    """Return the row of an option: how it is written, and its help."""
    metavar = told.get("metavar") or ("|".join(map(str, told["choices"])) if told.get("choices") else None)
    takes = told.get("nargs") != 0 and names[0].startswith("-") and told.get("action") != "store_true"
    value = f" {metavar or str(told['dest']).upper()}" if takes else ""
    shown = f"`{', '.join(names)}{value}`".replace("|", "\\|")
    text = str(told.get("help") or "")
    return f"| {shown} | {_cell(text % {**told, 'prog': ''} if action is not None or '%(' in text else text)} |"


def _table(heads: tuple[str, str], rows: list[str]) -> str:
    return "\n".join([f"| {heads[0]} | {heads[1]} |", "|---|---|", *rows])


def _cell(text: str) -> str:
    """Return a help text as it reads in a table: nothing in it is Markdown."""
    plain = " ".join(text.split())
    for letter in "\\`*_<>|[]":
        plain = plain.replace(letter, f"\\{letter}")
    return plain


def _prose(text: str) -> str:
    """Return a description: paragraphs, and what is indented as it stands."""
    blocks = textwrap.dedent(text).strip().split("\n\n")
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    if any(line.startswith(" ") for line in block.splitlines()):
        return f"```text\n{block}\n```"
    return _cell(block)


def _is_nested(action: argparse.Action) -> bool:
    return isinstance(action, argparse._SubParsersAction)


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next((dict(each.choices) for each in parser._actions if isinstance(each, argparse._SubParsersAction)), {})


def main() -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description="Write the pages of the reference from the parsers.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where a page differs")
    options = parser.parse_args()
    differing = [path for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text]
    for path in differing:
        print(f"{path.name}: {'is not what the parsers say' if options.check else 'written'}")
        if not options.check:
            path.write_text(pages()[path], encoding="utf-8")
    return int(bool(differing) and options.check)


if __name__ == "__main__":
    sys.exit(main())
