"""Writes perfsuite.1, the man page of all commands, in the macros of man(7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from help_texts import CommandText, Option

from perfsuite import __version__
from perfsuite.cli.command_help import EXITS
from perfsuite.cli.registry import Purpose

_HEAD = """.\\" Written by tools/reference_pages.py from the parsers.
.TH PERFSUITE 1 "" "perfsuite {version}" "User Commands"
.SH NAME
perfsuite \\- find out whether LLM inference got slower on a device
.SH SYNOPSIS
.B perfsuite
.I COMMAND
[options]
.SH DESCRIPTION
.B pytest \\-\\-device=host
measures and judges. These commands look at what it measured, and do what needs no tests."""


def man_page(commands: Sequence[CommandText]) -> str:
    """Return the page: each command is a subsection below its purpose."""
    lines = [_HEAD.format(version=_text(__version__))]
    for purpose in Purpose:
        lines.append(f".SH {_text(purpose.value.upper())}")
        for command in commands:
            if command.purpose is purpose:
                lines += _command(command)
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXITS.items():
        lines += [".TP", f".B {code}", _text(f"{meaning}.")]
    lines += [".SH SEE ALSO", ".BR pytest (1),", _text("and the pages below docs/ of the source.")]
    return "\n".join(lines) + "\n"


def _command(command: CommandText) -> Iterator[str]:
    yield f".SS {_text(command.name)}"
    yield from _body(command)
    for action in command.actions:
        yield from (".PP", f".B {_text(action.name)}", ".br")
        yield from _body(action)


def _body(command: CommandText) -> Iterator[str]:
    yield _text(command.summary)
    for paragraph in command.about:
        yield from (".PP", _text(paragraph))
    yield from _block([command.usage])
    for each in command.options:
        yield from (".TP", _named(each), _text(each.help) or "\\&")
    if command.examples:
        yield from (".PP", "Examples:", *_block(command.examples))
    for code, meaning in command.exits:
        yield from (".TP", f"Exit code {code}", _text(meaning))
    if command.writes:
        yield from (".PP", _text(f"Writes {command.writes}."))


def _block(lines: Sequence[str]) -> Iterator[str]:
    yield from (".PP", ".RS 4", ".nf", *map(_text, "\n".join(lines).splitlines()), ".fi", ".RE")


def _named(option: Option) -> str:
    names = f"\\fB{_text(option.names)}\\fR " if option.names else ""
    return f"{names}\\fI{_text(option.value)}\\fR" if option.value else names.rstrip()


def _text(text: str) -> str:
    """Return a text in which nothing is a request or an escape of roff."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    plain = plain.replace("~", "\\(ti").replace("^", "\\(ha").replace('"', "\\(dq")
    return re.sub(r"^\.", r"\\&.", plain, flags=re.MULTILINE)
