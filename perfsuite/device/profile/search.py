"""Where profiles are looked for, and which there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import platformdirs

from perfsuite.device.profile.file import SUFFIX, ProfileFile
from perfsuite.device.profile.record import is_name
from perfsuite.errors import DeviceError, meant

#: The machine that the command runs on: always the first of the names.
HOST = "host"

_FOLDER = "devices"


def own_folders(folder: Path = Path()) -> tuple[Path, ...]:
    """Return where your own profiles are looked for: ``devices/`` in the folder, then the user's."""
    return folder / _FOLDER, user_folder()


def user_folder() -> Path:
    """Return the user's folder of profiles, such as ``~/.config/perfsuite/devices``."""
    return Path(platformdirs.user_config_dir("perfsuite")) / _FOLDER


def profile_names(*, folders: Sequence[Path] | None = None) -> tuple[str, ...]:
    """List the devices that there are profiles of: the host, then the others by name; your own are among them."""
    own = {name for folder in _chosen(folders) for name in _names(folder)}
    return HOST, *sorted((own | set(shipped_names())) - {HOST})


@cache
def shipped_names() -> tuple[str, ...]:
    """List the profiles that ship with the suite."""
    found = (entry.name for entry in (files("perfsuite.device") / "profiles").iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX)))


def profile_files(name: str, *, folders: Sequence[Path] | None = None) -> tuple[ProfileFile, ...]:
    """Return the files of a profile in the order in which they are looked for; the first is the one that is meant."""
    if not is_name(name):
        return ()
    own = [
        ProfileFile(name=name, place=place, where=str(place), folder=folder)
        for folder in _chosen(folders)
        if _exists(place := folder / f"{name}{SUFFIX}")
    ]
    return *own, *([shipped_file(name)] if name in shipped_names() else [])


def shipped_file(name: str) -> ProfileFile:
    """Return the file of a profile that ships with the suite."""
    place = files("perfsuite.device") / "profiles" / f"{name}{SUFFIX}"
    return ProfileFile(name=name, place=place, where=f"profile {name}{SUFFIX} of the suite", folder=None)


def unknown_device(name: str, asked: str, *, folders: Sequence[Path] | None = None) -> DeviceError:
    """Return the error for a name that no profile has, with those that there are and the nearest of them."""
    known = profile_names(folders=folders)
    shown = name if name.isprintable() else repr(name)
    return DeviceError(f"{asked}{shown}: no such device; known are {', '.join(known)}{meant(name, known)}")


def _chosen(folders: Sequence[Path] | None) -> Sequence[Path]:
    return own_folders() if folders is None else folders


def _names(folder: Path) -> Iterator[str]:
    try:
        found = [entry.name for entry in folder.iterdir()]
    except OSError:  # a folder that is not there, or that cannot be read, offers nothing
        return
    for name in found:
        if name.endswith(SUFFIX) and is_name(name.removesuffix(SUFFIX)):
            yield name.removesuffix(SUFFIX)


def _exists(place: Path) -> bool:
    """Whether something has that name, a link that leads nowhere included: that is reported, and not passed over."""
    try:
        return place.is_symlink() or place.exists()
    except OSError:
        return False
