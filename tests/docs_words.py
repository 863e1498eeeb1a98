"""Command lines as a shell takes them apart: words, and the simple commands between pipes and separators."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

#: What stands between two simple commands.
_SEPARATORS = frozenset({"|", "||", "&&", ";", "&"})

_REDIRECTION = re.compile(r"\d?[<>]+&?\d?")

_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)")

_PARAMETER = re.compile(r"\$[!?$]")

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def words(text: str) -> list[str]:
    """Split a command line into words, without its comment; redirections and separators are words of their own."""
    splitter = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars="<>|&;")
    splitter.whitespace_split = True
    splitter.commenters = "#"
    return list(splitter)


def is_assignment(word: str) -> bool:
    return _ASSIGNMENT.match(word) is not None


def simple_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command, without redirections and the variables set before it.

    What ``$(...)`` holds is a command of its own, and 1 takes its place, as that of ``$!`` and similar ones.
    """
    for within in _SUBSTITUTION.findall(text):
        yield from simple_commands(within)
    command: list[str] = []
    for word in [*words(_PARAMETER.sub("1", _SUBSTITUTION.sub("1", text))), ";"]:
        if word not in _SEPARATORS:
            command.append(word)
        else:
            if told := _bare(command):
                yield told
            command = []


def _bare(command: list[str]) -> list[str]:
    """Leave out redirections with their targets, and assignments at the beginning."""
    kept: list[str] = []
    targets = {number + 1 for number, word in enumerate(command) if _REDIRECTION.fullmatch(word)}
    for number, word in enumerate(command):
        if number in targets or _REDIRECTION.fullmatch(word) or (not kept and is_assignment(word)):
            continue
        kept.append(word)
    return kept
