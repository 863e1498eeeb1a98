"""Whether the real parsers take a command of the documentation: its options, subcommands, targets and scripts."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
from collections.abc import Callable, Container
from functools import cache
from pathlib import Path

import pytest
from _pytest.config import get_config

from perfsuite.cli.command_help import whole_parser
from perfsuite.experiments.tracing.command import word_parser
from perfsuite.plugin.registration import add_short_names

from .docs_pages import ROOT
from .docs_words import simple_commands

#: What any shell has; it is run where its command is, and nothing here looks at its options.
SHELL = frozenset(
    shlex.split(". : [ cat cd chmod cp cut diff echo env eval exit export false find grep head kill ls mkdir mv")
)
SHELL |= frozenset(shlex.split("printf ps rm sed sh sleep sort source tail tee test timeout touch true unset wait wc"))

#: Programs of others, which no parser of this repository knows.
FOREIGN = frozenset(shlex.split("curl duckdb git labgrid-client promtool pytest-benchmark sqlite3 sudo taskset"))

#: Words before a command that is looked at by itself.
_INLINE = re.compile(r"(perfsuite|pytest) (?=-|[a-z])")

_WRAPPERS = {"sudo": 1, "time": 1, "exec": 1, "env": 1, "timeout": 2}


def complaint(text: str) -> str | None:
    """Say what is wrong with a command line; None where the parsers take all that is ours in it.

    Parsing `--benchmark-json=FILE` creates the file: the caller stands where that does no harm.
    """
    for command in simple_commands(text):
        name, check = _checker(_unwrapped(command))
        if check is None:
            return f"{name}: neither a command of this repository, nor of any shell, nor listed in tests/docs_syntax.py"
        if wrong := check(_unwrapped(command)):
            return wrong
    return None


def inline_complaint(text: str) -> str | None:
    """Say which subcommand or option of a command that a sentence names is not there; None for anything else."""
    match = _INLINE.match(text)
    if match is None:
        return None
    told = [word.strip("[]").split("=", 1)[0] for word in text.split()]
    if match[1] == "pytest":
        return _unknown(told, _pytest_options())
    parser = _command_parser()
    for place, name in enumerate(told[1:], 1):
        subcommands = _subcommands(parser)
        if own := _own_parser(told[place - 1 : place + 1]):
            parser = own
        elif name in subcommands:
            parser = subcommands[name]
        elif subcommands and re.fullmatch(r"[a-z][a-z-]*", name):
            return f"{text}: no subcommand {name!r}"
        else:
            break
    if "--" in told:
        told = told[: told.index("--")]
    return _unknown(told, parser._option_string_actions)


def _unknown(told: list[str], known: Container[str]) -> str | None:
    wrong = [word for word in told if re.fullmatch(r"--[a-z][a-z-]*", word) and word not in known]
    return f"no option {wrong[0]!r}: {' '.join(told)}" if wrong else None


def _unwrapped(command: list[str]) -> list[str]:
    if command[0] == "sudo" and len(command) > 1 and Path(command[1]).name in (*SHELL, *FOREIGN):
        return command
    while len(command) > 1 and command[0] in _WRAPPERS:
        command = command[_WRAPPERS[command[0]] :]
    return command


def _checker(command: list[str]) -> tuple[str, Callable[[list[str]], str | None] | None]:
    """Return what a command is called, and who looks at it; None where nobody does."""
    name = command[0]
    if name.startswith("$"):
        return name, _pass
    if name in SHELL | FOREIGN:
        return name, _pass
    if re.fullmatch(r"python[\d.]*", Path(name).name):
        return name, _python
    by_name = {"perfsuite": _perfsuite, "pytest": _pytest, "make": _make}
    if Path(name).name in by_name:
        return name, by_name[Path(name).name]
    return name, _script if "/" in name and not name.startswith("path/to") else None


def _pass(_: list[str]) -> None:
    return None


def _perfsuite(command: list[str]) -> str | None:
    if own := _own_parser(command[1:3]):
        return _parsed(own.parse_args, command[3:], " ".join(command[:3]))
    return _parsed(_command_parser().parse_args, command[1:], "perfsuite")


def _own_parser(told: list[str]) -> argparse.ArgumentParser | None:
    """Return the parser of what takes the words behind it by itself, such as 'trace view'."""
    if told[:1] != ["trace"] or told[1:] not in (["view"], ["agree"]):
        return None
    return word_parser(told[1])


def _pytest(command: list[str]) -> str | None:
    return _parsed(_pytest_parser().parse, command[1:], "pytest")


def _parsed(parse: Callable[[list[str]], object], arguments: list[str], name: str) -> str | None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            parse(arguments)
    except SystemExit as end:
        return f"{name}: {said.getvalue().strip().splitlines()[-1]}" if end.code else None
    except pytest.UsageError as error:
        return f"pytest: {str(error).splitlines()[-1]}"
    return None


def _make(command: list[str]) -> str | None:
    given = [word for word in command[1:] if not word.startswith("-")]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    if unknown := [word for word in given if "=" not in word and word not in targets]:
        return f"make: no target {unknown[0]!r}"
    arguments = [word.removeprefix("ARGS=") for word in given if word.startswith("ARGS=")]
    return _pytest(["pytest", *shlex.split(" ".join(arguments))]) if arguments else None


def _script(command: list[str]) -> str | None:
    path = ROOT / command[0].removeprefix("../")
    return None if os.access(path, os.X_OK) else f"{command[0]}: no such script, or not executable"


def _python(command: list[str]) -> str | None:
    match command[1:]:
        case ["-m", "pytest", *arguments]:
            return _pytest(["pytest", *arguments])
        case ["-c", code, *_]:
            compile(code, "the documentation", "exec")
        case [script, *_] if script.removeprefix("../").startswith(("tools/", "docs/")):
            return None if (ROOT / script.removeprefix("../")).is_file() else f"{script}: no such file"
    return None


@cache
def _command_parser() -> argparse.ArgumentParser:
    return whole_parser()


@cache
def _pytest_parser() -> pytest.Parser:
    config = get_config()
    config.pluginmanager.load_setuptools_entrypoints("pytest11")
    add_short_names(config._parser)
    return config._parser


@cache
def _pytest_options() -> frozenset[str]:
    parser = _pytest_parser()
    groups = (parser._anonymous, *parser._groups)
    return frozenset(name for group in groups for option in group.options for name in option.names())


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    return dict(actions[0].choices) if actions else {}
