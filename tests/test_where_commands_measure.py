"""The documents say of each subcommand that measures where it can."""

from __future__ import annotations

import re
from pathlib import Path

from perfsuite.cli.command_help import parser_of
from perfsuite.cli.registry import COMMANDS

_PAGE = Path(__file__).resolve().parents[1] / "docs" / "known-limitations.md"

#: Take a device's name, and measure nothing on it.
_MERELY_NAMING = {"baseline", "forecast", "history", "devices"}


def told() -> set[str]:
    _, _, table = _PAGE.read_text().partition("## Where each subcommand measures")
    return {name for row in re.findall(r"^\| (`[^|]+) \|", table, re.M) for name in re.findall(r"`([a-z-]+)`", row)}


def _options(name: str) -> set[str]:
    parsers, found = [parser_of([name])], set[str]()
    while parsers:
        for action in parsers.pop()._actions:
            found |= set(action.option_strings)
            inner = action.choices if isinstance(action.choices, dict) else {}
            parsers += [inner[name]] if name in inner else inner.values()
    return found


def test_each_subcommand_that_takes_a_device_is_in_the_table() -> None:
    """A new one cannot be forgotten, and none is there that does not exist."""
    takers = {each.name for each in COMMANDS if "--device" in _options(each.name)}
    assert {"kernels", "sweep", "policy"} <= takers
    assert takers - _MERELY_NAMING <= told()
    assert told() - {"pytest"} <= {each.name for each in COMMANDS}
