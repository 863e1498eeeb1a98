"""The argument that names a device, of the subcommands of ``perfsuite devices``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfsuite.device.profile import Profile


def add_device_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``NAME``, the device that the subcommand is about."""
    parser.add_argument("device", metavar="NAME", help="a device of 'perfsuite devices list'")


def chosen_profile(arguments: argparse.Namespace) -> Profile:
    """Return the profile of the device that was named; an unknown or a broken one is a `DeviceError`."""
    from perfsuite.device.profile import find_profile  # only where one is asked for

    return find_profile(arguments.device, asked="")
