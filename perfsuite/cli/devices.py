"""``perfsuite devices`` (prepare): list, show and add the devices that a run can be on, and get one ready.

To add an action, write ``perfsuite/cli/devices_<name>.py`` with ``add_parser(commands)``, which calls
`perfsuite.cli.command_help.add_action` and sets ``run``; imports that take time are for that function. Its first line
begins with the action, as ``perfsuite devices list`` has it.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
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


#: In the order in which ``perfsuite devices --help`` lists them; without one, ``list`` is run.
ACTIONS = tuple(
    sorted(
        path.stem.removeprefix("devices_")
        for path in Path(__file__).parent.glob("devices_*.py")
        if path.read_text("utf-8").startswith('"""``perfsuite devices ')
    )
)

_ABOUT = """
A device is a profile, a small TOML file: how the device is reached, how it is to be while it is measured, how strictly
it is judged. Profiles are looked for in ./devices, then in the user's own folder, then among those that ship with the
suite. Without an action, the devices are listed.
"""

_EXAMPLES = {
    "perfsuite devices": "what there is",
    "perfsuite devices show rubikpi": "what a profile says, and from which file each value comes",
    "perfsuite devices add desk-pi --like rubikpi --address user@desk-pi": "a board of your own",
}


def add_parser(commands: Commands) -> None:
    """Add the subcommand and its actions."""
    parser = add_command(
        commands,
        "devices",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="what its actions say",
        see=("docs/how-to/add-a-device.md", "docs/reference/profiles.md"),
    )
    actions = parser.add_subparsers(metavar="ACTION", dest="devices_action")
    for name in ACTIONS:
        import_module(f"perfsuite.cli.devices_{name}").add_parser(actions)
    parser.set_defaults(run=actions.choices["list"].get_default("run"), json=False)
