"""A profile out of its layers, with what only the whole can tell."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perfsuite.device.machine import Conditions
from perfsuite.device.profile.file import TODO, ProfileFile
from perfsuite.device.profile.layers import Layered, layered
from perfsuite.device.profile.record import Profile
from perfsuite.device.profile.values import BY_KIND, Tables
from perfsuite.device.reach import HOMES, Reach
from perfsuite.errors import DeviceError
from perfsuite.records.codec import from_plain

#: By way: the keys of ``[reach]`` that mean something beside it.
_KEYS_OF = {
    "local": ("home",),
    "ssh": ("address", "port", "identity_file", "known_hosts_file", "home"),
    "adb": ("address", "home"),
    "serial": ("address", "baud", "home"),
}

#: What is a name, or nothing.
_NAMES = ("opencl_platform", "default_model", "default_scenario", "counts_for")


def built(name: str, layers: Layered) -> Profile:
    """Return the profile; raises DeviceError: nobody described it, or ``[reach]`` has a key that its way has not."""
    where = layers.files[0].where
    said: dict[str, Any] = {**from_plain(layers.tables, Tables, where, DeviceError, TODO)}
    if "description" not in said:
        raise DeviceError(f"{where}: description is missing; expected a line of text")
    peaks = said.pop("theoretical", ())
    conditions = {key: value for key, value in said.pop("conditions", {}).items() if value not in ("", math.inf)}
    listed: Any = {key: tuple(value) if isinstance(value, list) else value for key, value in conditions.items()}
    names: Any = {key: said.pop(key, None) or None for key in _NAMES}
    return Profile(
        name=name,
        kind=said.pop("kind", name),
        reach=_reach(name, said.pop("reach", {}), layers),
        conditions=Conditions(**listed),
        theoretical_peaks=tuple(each for each in peaks if each.official),
        unofficial_peaks=tuple(each for each in peaks if not each.official),
        **said.pop("judging"),
        **names,
        **said,
    )


#: An IPv6 address as it is written where a port may follow.
_IN_BRACKETS = re.compile(r"(?P<user>([^@\[\]]+@)?)\[(?P<host>[^\[\]]+)\]")


def _reach(name: str, said: Mapping[str, Any], layers: Layered) -> Reach:
    """Return the way; by ssh, a device without an address is reached by its name, and IPv6 has no brackets."""
    plain = {key: value for key, value in said.items() if value != ""}
    way = plain.pop("way", "local")
    for key in plain:
        if key not in _KEYS_OF[way]:
            text = f"{layers.where('reach', key)}: [reach] {key} = {plain[key]!r} with way = {way!r}"
            raise DeviceError(f"{text}, which takes {', '.join(_KEYS_OF[way])} alone")
    for key in ("identity_file", "known_hosts_file"):
        if key in plain:
            plain[key] = _path(plain[key], layers, key)
    if way == "ssh":
        plain["address"] = _without_brackets(plain.get("address", name), layers)
    return Reach(way=way, **{"home": HOMES[way], **plain})


def _without_brackets(address: str, layers: Layered) -> str:
    """Return an address as OpenSSH's client takes it: IPv6 without brackets, and a port by itself."""
    if match := _IN_BRACKETS.fullmatch(address):
        return f"{match['user']}{match['host']}"
    if "[" in address or "]" in address:
        where = layers.where("reach", "address")
        raise DeviceError(f"{where}: [reach] address = {address!r}: expected [user@][IPv6], and a port as port = N")
    return address


def _path(text: str, layers: Layered, key: str) -> str:
    """Return a path that holds in any folder: it is relative to its file's folder, and ``~`` is the home."""
    file = layers.origins["reach", key]
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise DeviceError(f"{file.where}: [reach] {key} = {text!r}: that home is unknown") from None
    return str(path if file.folder is None else file.folder.absolute() / path)


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


# what a profile says in the end, value by value, with the file that each is from


_TOLD = ("description", "kind", "memory_bytes", "default_model", "opencl_platform")
_SHARES = ("session_spread_ratio", "max_waiting_ratio", "max_others_ratio", "ceiling_spread_ratio", "forecast_least_ns")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileValue:
    """One value of a profile."""

    #: The way to it in the file: ``reach.port``.
    key: str
    #: As a run takes it; None where there is none.
    value: object
    #: The file that it is from; None where nobody said, and it is what the suite takes then.
    file: ProfileFile | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileAccount:
    """A profile, and where all of it comes from."""

    profile: Profile
    #: Its own file first, then those that it extends.
    files: tuple[ProfileFile, ...]
    values: tuple[ProfileValue, ...]
    #: The file that the theoretical peaks are from; None where there are none.
    peaks_file: ProfileFile | None


def profile_account(name: str, *, folders: Sequence[Path] | None = None, asked: str = "--device=") -> ProfileAccount:
    """Read a profile with where it comes from; raises as `perfsuite.device.profile.find_profile` does."""
    layers = layered(name, asked, folders=folders)
    profile = built(name, layers)
    return ProfileAccount(
        profile=profile,
        files=layers.files,
        values=tuple(
            ProfileValue(key=".".join(keys), value=value, file=layers.origins.get(keys))
            for keys, value in _said(profile)
        ),
        peaks_file=layers.origins.get(("theoretical",)),
    )


def _said(profile: Profile) -> Iterator[tuple[tuple[str, ...], object]]:
    yield from (((name,), getattr(profile, name)) for name in _TOLD)
    yield from ((("reach", name), value) for name, value in asdict(profile.reach).items())
    yield from ((("conditions", name), value) for name, value in asdict(profile.conditions).items())
    yield from ((("judging", name), getattr(profile, name)) for name in _SHARES)
    for table in BY_KIND:
        yield from ((("judging", table, name), value) for name, value in getattr(profile, table).items())
