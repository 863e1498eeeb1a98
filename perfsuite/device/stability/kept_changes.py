"""The file in which a run keeps what it changes on a device: what it says, and how it is read and written."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from perfsuite.device.process_start import boot_id, process_start
from perfsuite.device.stability.small_files import NAME

#: All that a restore file may name, so that a damaged or foreign one leads nowhere else.
_ALLOWED = re.compile(r"sys/(?!.*\.\./).+/(?:scaling_governor|governor)")


_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value that is changed for a run."""

    #: Below the root, without a leading ``/``.
    path: str
    before: str
    #: All that runs have set since: any other value is somebody else's.
    set_to: tuple[str, ...]

    def and_to(self, others: Sequence[str]) -> Change:
        """Return the same change with more values that were set."""
        return replace(self, set_to=tuple(dict.fromkeys((*self.set_to, *others))))


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreFile:
    """What a restore file says: who changes what, and since which start of the kernel."""

    #: "" where the system did not say.
    boot_id: str
    process_id: int
    #: When that process began, in the kernel's ticks, which tells it from a later one with its number.
    process_start: int | None
    changes: tuple[Change, ...]

    def is_of_a_living_process(self, root: Path) -> bool:
        """Whether the process that has made the changes still runs."""
        started = process_start(self.process_id, root)
        return started is not None and not started.is_ended and started.ticks == self.process_start

    def is_of_this_boot(self, root: Path) -> bool:
        """Whether what was changed can still be so."""
        return bool(self.boot_id) and self.boot_id == boot_id(root)


def read_kept(path: Path) -> RestoreFile | None:
    """Read a restore file; None where there is none, or one that is damaged, or names what no run changes."""
    try:
        plain = json.loads(path.read_bytes())
        start = plain["process_start"]
        return RestoreFile(
            boot_id=_checked(plain["boot_id"], str),
            process_id=_checked(plain["process_id"], int),
            process_start=None if start is None else _checked(start, int),
            changes=tuple(_change(each) for each in plain["changes"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def write_kept(path: Path, kept: RestoreFile) -> None:
    """Write a restore file, whole and down to the disk; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(json.dumps(asdict(kept), indent=1))
            out.flush()
            os.fsync(out.fileno())
        os.replace(partial, path)
        _sync_folder(path.parent)
    finally:
        Path(partial).unlink(missing_ok=True)


def remove_kept(path: Path) -> None:
    """Remove a restore file, down to the disk."""
    try:
        path.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError:
        pass


def put_aside(path: Path) -> str:
    """Put a file away that cannot be read, and say so."""
    aside = path.with_name(f"{path.name}.damaged")
    try:
        os.replace(path, aside)
    except OSError as error:
        return f"{path}: is damaged, and cannot be moved ({error.strerror}); nothing was restored, check the governors"
    return f"{path}: is damaged; kept as {aside.name}, and nothing was restored: check the governors"


def _change(plain: Any) -> Change:
    change = Change(path=plain["path"], before=plain["before"], set_to=tuple(plain["set_to"]))
    names = (change.before, *change.set_to)
    if not (_ALLOWED.fullmatch(change.path) and all(NAME.fullmatch(each) for each in names)):
        raise ValueError(change)
    return change


def _checked(value: object, kind: type[_Kind]) -> _Kind:
    if not isinstance(value, kind):
        raise TypeError(value)
    return value


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
