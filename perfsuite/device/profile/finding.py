"""The profile of a device by its name, from the files that say something of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfsuite.device.profile.building import built
from perfsuite.device.profile.layers import layered
from perfsuite.device.profile.record import Profile
from perfsuite.errors import DeviceError


def find_profile(name: str, *, folders: Sequence[Path] | None = None, asked: str = "--device=") -> Profile:
    """Read the profile of a device.

    Parameters
    ----------
    folders
        Where one's own profiles are looked for before those that ship; `own_folders` where it is left out.
    asked
        How it was asked for, before the name in a message.

    Raises
    ------
    DeviceError
        No profile has that name: it lists the known ones. Or one of its files is broken: it names the file, the key,
        its value, and what is accepted.
    """
    return built(name, layered(name, asked, folders=folders))


def find_local_profile(name: str, *, folders: Sequence[Path] | None = None, asked: str = "--device=") -> Profile:
    """Read the profile of a device that is this machine, as `find_profile` does; for what measures here alone.

    Raises
    ------
    DeviceError
        As `find_profile`, and where the device is another machine: measured here, it would be this one.
    """
    profile = find_profile(name, folders=folders, asked=asked)
    if profile.is_local:
        return profile
    raise DeviceError(
        f"{asked}{name}: is reached by {profile.reach.text}, and this measures the machine that it runs on; "
        "run it there, with --device=host"
    )
