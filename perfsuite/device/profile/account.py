"""What a profile says in the end, value by value, with the file that each is from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from perfsuite.device.profile.building import built
from perfsuite.device.profile.file import ProfileFile
from perfsuite.device.profile.layers import Layered, layered
from perfsuite.device.profile.record import Profile
from perfsuite.device.profile.values import BY_KIND

_NAMES = ("description", "kind", "memory_bytes", "default_model", "opencl_platform")
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
        values=tuple(_values(profile, layers)),
        peaks_file=layers.origins.get(("theoretical",)),
    )


def _values(profile: Profile, layers: Layered) -> Iterator[ProfileValue]:
    for keys, value in _said(profile):
        yield ProfileValue(key=".".join(keys), value=value, file=layers.origins.get(keys))


def _said(profile: Profile) -> Iterator[tuple[tuple[str, ...], object]]:
    yield from (((name,), getattr(profile, name)) for name in _NAMES)
    yield from ((("reach", name), value) for name, value in asdict(profile.reach).items())
    yield from ((("conditions", name), value) for name, value in asdict(profile.conditions).items())
    yield from ((("judging", name), getattr(profile, name)) for name in _SHARES)
    for table in BY_KIND:
        yield from ((("judging", table, name), value) for name, value in getattr(profile, table).items())
