"""One file of a profile: where it lies, and its TOML as plain tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.errors import DeviceError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

#: Files of profiles end so.
SUFFIX = ".toml"

#: A profile is some hundred lines; whatever is longer is none.
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile:
    """A profile's file, one's own or one that ships with the suite."""

    name: str
    place: Traversable
    #: Where it lies, for messages and tables.
    where: str
    #: The folder that paths in it are relative to; None for those that ship.
    folder: Path | None
    #: What is to be in it, where it is not written yet.
    draft: bytes | None = None

    def tables(self) -> Mapping[str, Any]:
        """Return what is in it.

        Raises
        ------
        DeviceError
            It cannot be read, or it is no TOML: with the line, where there is one.
        """
        try:
            return tomllib.loads(self._text())
        except ValueError as error:  # a number of thousands of digits is one that is no TOMLDecodeError
            raise DeviceError(f"{self.where}: is no TOML ({' '.join(str(error).split())})") from None
        except RecursionError:
            raise DeviceError(f"{self.where}: is no profile (lists in lists without an end)") from None

    def _text(self) -> str:
        content = self._content() if self.draft is None else self.draft
        if len(content) > _MOST_BYTES:
            raise DeviceError(f"{self.where}: has more than {_MOST_BYTES:,} bytes, which is no profile")
        try:
            return content.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise DeviceError(f"{self.where}: is not UTF-8 (line {line}); save it as UTF-8") from None

    def _content(self) -> bytes:
        if self.place.is_dir():
            raise DeviceError(f"{self.where}: is a folder, expected a profile's file")
        if not self.place.is_file():
            raise DeviceError(f"{self.where}: is no file, or a link to none; expected a profile's file")
        try:
            with self.place.open("rb") as file:
                return file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise DeviceError(f"{self.where}: cannot be read ({error.strerror})") from None
