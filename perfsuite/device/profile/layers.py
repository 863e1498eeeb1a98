"""A profile's files one above the other: what one does not say is taken over from the one that it extends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.device.profile.file import ProfileFile
from perfsuite.device.profile.search import HOST, profile_files, shipped_file, unknown_device
from perfsuite.errors import DeviceError

#: The key by which a profile takes over another one.
EXTENDS = "extends"

#: More than anybody needs, and less than what a mistake would take.
_MOST_LAYERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """The values of a profile and of all that it extends, with where each is from."""

    #: The files, the profile's own first.
    files: tuple[ProfileFile, ...]
    tables: Mapping[str, Any]
    #: By the way to a value, such as ``("reach", "port")``: the file that it is from.
    origins: Mapping[tuple[str, ...], ProfileFile]

    def where(self, *keys: str) -> str:
        """Return the file that a value is from, or that it should be in."""
        return self.origins.get(keys, self.files[0]).where


def layered(name: str, asked: str, *, folders: Sequence[Path] | None = None) -> Layered:
    """Read a profile with all that it extends.

    Raises
    ------
    DeviceError
        No profile has that name, a file cannot be read or holds what no profile may, or they extend in a circle.
    """
    there = profile_files(name, folders=folders)
    if not there:
        raise unknown_device(name, asked, folders=folders)
    return layered_from(there[0], folders=folders)


def layered_from(first: ProfileFile, *, folders: Sequence[Path] | None = None) -> Layered:
    """Read a profile that begins with this file, one that may not be written yet; raises as `layered` does."""
    chain = _chain(first, folders)
    tables: dict[str, Any] = {}
    origins: dict[tuple[str, ...], ProfileFile] = {}
    host = shipped_file(HOST)  # from which what nobody says of judging is
    judging = {"judging": host.tables()["judging"]}
    for file, plain in ((host, judging), *reversed(chain)):
        _lay(tables, plain, (), file, origins)
    return Layered(files=tuple(file for file, _ in chain), tables=tables, origins=origins)


def _chain(first: ProfileFile, folders: Sequence[Path] | None) -> list[tuple[ProfileFile, dict[str, Any]]]:
    """Return the files from the profile's own to the last that is extended, with their tables."""
    chain: list[tuple[ProfileFile, dict[str, Any]]] = []
    file: ProfileFile | None = first
    while file is not None:
        if any(each.place == file.place for each, _ in chain) or len(chain) >= _MOST_LAYERS:
            ring = " -> ".join([*(each.where for each, _ in chain), file.where])
            raise DeviceError(f"{first.where}: extends in a circle: {ring}; break it at one of them")
        plain = dict(file.tables())
        base = plain.pop(EXTENDS, None)
        chain.append((file, plain))
        file = None if base is None else _extended(base, file, folders)
    return chain


def _extended(base: str, file: ProfileFile, folders: Sequence[Path] | None) -> ProfileFile:
    """Return the file that one extends; one that names itself means the next of that name."""
    there = profile_files(base, folders=folders)
    if base == file.name:
        places = [each.place for each in there]
        there = there[places.index(file.place) + 1 :] if file.place in places else there
        if not there:
            raise DeviceError(f"{file.where}: extends = {base!r}: there is no other profile of that name to extend")
    if not there:
        raise unknown_device(base, f"{file.where}: extends = ", folders=folders)
    return there[0]


def _lay(
    below: dict[str, Any],
    above: Mapping[str, Any],
    keys: tuple[str, ...],
    file: ProfileFile,
    origins: dict[tuple[str, ...], ProfileFile],
) -> None:
    """Put tables over others: single values and lists are replaced, tables go on."""
    if keys == ("reach",) and "way" in above and above["way"] != below.get("way", "local"):
        below.clear()  # an address by adb is none by ssh
        for each in [each for each in origins if each[:1] == keys]:
            del origins[each]
    for key, value in above.items():
        if isinstance(value, Mapping):
            inner = below.setdefault(key, {})
            _lay(inner, value, (*keys, key), file, origins)
        else:
            below[key] = value
            origins[(*keys, key)] = file
