"""The profile of a device by its name, from the files that say something of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfsuite.device.profile.building import built
from perfsuite.device.profile.layers import layered
from perfsuite.device.profile.record import Profile


def find_profile(name: str, *, folders: Sequence[Path] | None = None, asked: str = "--device=") -> Profile:
    """Read the profile of a device.

    Parameters
    ----------
    folders
        Where your own profiles are looked for before those that ship; `own_folders` where it is left out.
    asked
        How it was asked for, before the name in a message.

    Raises
    ------
    DeviceError
        No profile has that name: it lists the known ones. Or one of its files is broken: it names the file, the key,
        its value, and what is accepted.
    """
    return built(name, layered(name, asked, folders=folders))
