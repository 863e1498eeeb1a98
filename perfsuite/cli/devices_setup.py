"""``perfsuite devices setup``: install the suite on a device."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.cli.answer import Sheet, show
from perfsuite.cli.command_help import Commands, add_action, add_quiet
from perfsuite.cli.devices import add_device_argument, chosen_profile

if TYPE_CHECKING:
    from perfsuite.device.setup.set_up import SetUp

_ABOUT = """
What is sent is the suite that runs here, Python and native sources, 2 MB. The device's own pip installs it there in an
environment of its own ([reach] home of the profile, ~/.local/share/perfsuite), and compiles llama.cpp once, which takes
a small board tens of minutes. What is there already is not sent or installed again.

What was installed before stays in use until the new one has shown that it runs. Meanwhile nobody measures on the
device: setup holds its lock. Ctrl-C ends what runs there.

Without a network there, --wheels names a folder here with the wheels of all that the suite requires, and --offline lets
pip look at nothing else. Nothing of the system is changed: what is missing is told with the command that installs it.
"""

_EXAMPLES = {
    "perfsuite devices setup rubikpi": "the first time, and after each change of the suite",
    "perfsuite devices setup rubikpi --wheels wheels-aarch64 --offline": "a board without a network",
    "perfsuite devices setup rubikpi --python python3.12 --force": "with another Python, and all anew",
}


def add_parser(commands: Commands) -> None:
    """Add the action."""
    parser = add_action(
        commands,
        "setup",
        summary="install the suite on a device, and check versions",
        about=_ABOUT,
        examples=_EXAMPLES,
        writes="below [reach] home on the device, and nothing here",
    )
    add_device_argument(parser)
    text = "folder here with wheels, which the device's pip looks at first"
    parser.add_argument("--wheels", type=Path, metavar="DIR", help=text)
    parser.add_argument("--offline", action="store_true", help="install from --wheels alone, without a network")
    text = "the Python there that makes the environment (default python3)"
    parser.add_argument("--python", default="python3", metavar="COMMAND", help=text)
    parser.add_argument("--force", action="store_true", help="install anew, and compile llama.cpp again")
    add_quiet(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from perfsuite.cli.progress import progress
    from perfsuite.device.setup.set_up import SetupOrder, set_up
    from perfsuite.device.target.opening import open_target
    from perfsuite.errors import DeviceError

    profile = chosen_profile(options)
    if profile.reach.way == "local":
        raise DeviceError(f"{profile.name}: is this machine, where the suite is installed; there is nothing to set up")
    order = SetupOrder(
        device=profile.name,
        home=profile.reach.home,
        python=options.python,
        wheels=options.wheels,
        is_offline=options.offline,
        is_forced=options.force,
    )
    with closing(open_target(profile.reach)) as target, progress(f"setup of {profile.name}", options) as tell:
        done = set_up(target, order, tell)
    _show(profile.name, done)
    return 0


def _show(device: str, done: SetUp) -> None:
    """Print the versions on both sides, and what comes next."""
    from perfsuite.cli.devices_installed import own_account
    from perfsuite.device.setup.needs import read_installed

    here, there = read_installed(own_account()), done.installed
    rows = (
        ("perfsuite", here.suite_version, there.suite_version),
        ("plans", here.plan_schema, there.plan_schema),
        ("Python", here.python_version, there.python_version),
        ("machine", here.machine, there.machine),
        ("llama.cpp", here.engine_build_id or "none", there.engine_build_id or "none"),
    )
    show(Sheet(("", "here", device), rows))
    print(f"{device}: {'installed' if done.is_new else 'is there already'}: {done.python}")
    if done.installed.engine_problem:
        print(f"{device}: no llama.cpp: {done.installed.engine_problem}")
    print(f"next: perfsuite devices doctor {device}, then pytest --device={device}")
