"""One file of a profile: where it lies, and its TOML as plain tables, which hold what a profile may."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.device.profile.values import BY_KIND, Tables
from perfsuite.errors import DeviceError
from perfsuite.records.codec import from_plain, parse_toml

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

#: Files of profiles end so.
SUFFIX = ".toml"

#: With which the line on a file that holds something else ends.
TODO = "docs/reference/profiles.md says what a profile takes"

#: A profile is some hundred lines; whatever is longer is none.
_MOST_BYTES = 1 << 20

_MOST_CELSIUS = 150.0
_KIND = re.compile(r"[A-Za-z_][\w.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile:
    """A profile's file, your own or one that ships with the suite."""

    name: str
    place: Traversable
    #: Where it lies, for messages and tables.
    where: str
    #: The folder that paths in it are relative to; None for those that ship.
    folder: Path | None
    #: What is to be in it, where it is not written yet.
    draft: bytes | None = None

    def tables(self) -> Mapping[str, Any]:
        """Return what is in it; raises DeviceError: it cannot be read, or is no profile, with the way to the value."""
        return self._read() if self.folder else _shipped(self)

    def _read(self) -> Mapping[str, Any]:
        content = self._content() if self.draft is None else self.draft
        if len(content) > _MOST_BYTES:
            raise DeviceError(f"{self.where}: has more than {_MOST_BYTES:,} bytes, which is not a profile")
        plain = parse_toml(content, self.where, DeviceError, TODO)
        for wrong in _wrong(from_plain(plain, Tables, self.where, DeviceError, TODO, is_closed=True)):
            raise DeviceError(f"{self.where}: {wrong}")
        return plain

    def _content(self) -> bytes:
        if self.place.is_dir():
            raise DeviceError(f"{self.where}: is a folder, expected a profile's file")
        if not self.place.is_file():
            raise DeviceError(f"{self.where}: is not a file, or a link to none; expected a profile's file")
        try:
            with self.place.open("rb") as file:
                return file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise DeviceError(f"{self.where}: cannot be read ({error.strerror})") from None


@cache
def _shipped(file: ProfileFile) -> Mapping[str, Any]:
    """Read a file that ships once: every profile rests on some, and a night may have thousands."""
    return file._read()


def _wrong(said: Mapping[str, Any]) -> Iterator[str]:
    """Yield what no type can say of the values of a file."""
    conditions, seen = said.get("conditions", {}), set[tuple[str, str]]()
    if _MOST_CELSIUS < conditions.get("start_below_celsius", 0.0) < math.inf:
        yield f"conditions.start_below_celsius is {conditions['start_below_celsius']}, expected degrees Celsius, or inf"
    if len(set(processors := conditions.get("processors", []))) < len(processors):
        yield f"conditions.processors is {processors}, expected a list of different processor numbers"
    for table in BY_KIND:
        for name in said.get("judging", {}).get(table, {}):
            if not _KIND.fullmatch(name):
                yield f"judging.{table}: {name!r} is not a kind of case, expected a name such as phase or operator"
    for place, peak in enumerate(said.get("theoretical", ())):
        if (peak.processor, peak.kind) in seen:
            yield f"theoretical[{place}]: {peak.kind} of {peak.processor!r} is there twice; leave one"
        seen.add((peak.processor, peak.kind))
