"""``perfsuite devices``, whose actions are in the modules ``perfsuite.cli.devices_<name>``."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING

from perfsuite.cli.command_help import Commands, add_command

if TYPE_CHECKING:
    from perfsuite.device.profile import Profile


def add_device_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``NAME``, the device that the subcommand is about."""
    parser.add_argument("device", metavar="NAME", help="a device of 'perfsuite devices list'")


def chosen_profile(arguments: argparse.Namespace) -> Profile:
    """Return the profile of the device that was named; an unknown or a broken one is a `DeviceError`."""
    from perfsuite.device.profile import find_profile  # only where one is asked for

    return find_profile(arguments.device, asked="")


#: In the order in which ``perfsuite devices --help`` lists their actions; without one, ``list`` is run.
_MODULES = ("profiles", "add", "probe", "setup", "doctor", "unlock")

_ABOUT = """
A device is a profile, a small TOML file. The first of a name is used: from ./devices, then your own folder, then those
that ship. Without an action, 'list' runs.
"""

_EXAMPLES = {
    "perfsuite devices add desk-pi --like rubikpi --address user@192.168.1.20": "a board on the desk",
    "perfsuite devices doctor desk-pi": "before the first run, and when results are noisy",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand and its actions."""
    parser = add_command(
        commands,
        "devices",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="profiles (add, probe); files on the device (setup)",
        see=("docs/how-to/add-a-device.md", "docs/reference/profiles.md"),
        exits={1: "'doctor' found something that makes measuring impossible"},
    )
    actions = parser.add_subparsers(metavar="ACTION", dest="devices_action")
    for name in _MODULES:
        import_module(f"perfsuite.cli.devices_{name}").add_parser(actions)
    parser.set_defaults(run=actions.choices["list"].get_default("run"), json=False)
