"""The subcommands: what each is called, what for, and in which module it is.

To add one, write ``perfsuite/cli/<name>.py``, or ``command.py`` in the folder of an experiment, and nothing else. Its
first line registers it, as ``perfsuite --help`` shows it: the name, the purpose, and what it does, in one line::

    \"""``perfsuite report`` (look): show a run as one HTML page, alone or beside others.\"""

It has ``add_parser(commands)``, which calls `perfsuite.cli.command_help.add_command`, and answers with
`perfsuite.cli.answer.give`. The module is imported only when the subcommand is run; completion finds it by itself.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfsuite.cli.command_help import Commands


class Purpose(str, Enum):
    """What a subcommand is for: the headings of ``perfsuite --help``, in their order."""

    LOOK = "Look at runs and keep references"
    WATCH = "Watch and trace"
    MEASURE = "Measure a device"
    FORECAST = "Forecast"
    TRUST = "Know what the verdicts are worth"
    PREPARE = "Prepare and set up"


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand."""

    name: str
    purpose: Purpose
    #: What it does, in one line without a full stop.
    summary: str
    #: The module that has ``add_parser``.
    module: str

    def load(self, commands: Commands) -> argparse.ArgumentParser:
        """Import the subcommand's module and let it add its parser; return that."""
        import_module(self.module).add_parser(commands)
        return commands.choices[self.name]


_PACKAGE = Path(__file__).resolve().parents[1]
_PLACES = ("cli/*.py", "experiments/*/command*.py")
_FIRST_LINE = re.compile(r'"""``perfsuite ([a-z-]+)`` \((\w+)\): (.+)\.(?:""")?\n')


def _found() -> Iterator[Command]:
    for path in (each for place in _PLACES for each in _PACKAGE.glob(place)):
        with path.open(encoding="utf-8") as source:
            line = _FIRST_LINE.fullmatch(source.readline())
        if line is not None:
            module = ".".join(("perfsuite", *path.relative_to(_PACKAGE).with_suffix("").parts))
            yield Command(name=line[1], purpose=Purpose[line[2].upper()], summary=line[3], module=module)


#: In the order in which ``perfsuite --help`` lists them below the heading of their purpose.
COMMANDS = tuple(sorted(_found(), key=lambda each: ([*Purpose].index(each.purpose), each.name)))


def summary_of(name: str) -> str:
    """Return what a subcommand does, in one line."""
    return next(command.summary for command in COMMANDS if command.name == name)
