"""The folders of nights: a new one, the last one, and one night at a time in each."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

from perfsuite.errors import LockedError, PerfsuiteError
from perfsuite.nightly.night_state import STATE_NAME

#: A link to the folder of the night that was begun last.
LATEST = "latest"

_LOCK_NAME = ".lock"

#: The cells of a night that was killed end within this time; see `perfsuite.nightly.keeper`.
_ENDING_LIMIT_S = 60.0


def new_night(folder: Path) -> Path:
    """Make the folder of a new night, named for the time, and let ``latest`` lead there."""
    if (link := folder / LATEST).exists() and not link.is_symlink():
        raise PerfsuiteError(f"{link}: is no link of a night's; move it away, or choose another --output")
    began = datetime.now(timezone.utc)
    for number in range(100):
        night = folder / f"{began:%Y%m%dT%H%M%SZ}{f'-{number}' if number else ''}"
        try:
            night.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise PerfsuiteError(f"{night}: cannot be made ({error.strerror}); choose another --output") from error
        _link(folder, night.name)
        return night
    raise PerfsuiteError(f"{folder}: a hundred nights began within this second")


def last_night(folder: Path) -> Path:
    """Return the folder of the night that began last; `PerfsuiteError` where there is none."""
    nights = sorted(path.parent for path in folder.glob(f"*/{STATE_NAME}") if path.parent.name != LATEST)
    if not nights:
        raise PerfsuiteError(f"{folder}: holds no night to go on with; leave out --resume, or name its folder with -o")
    return nights[-1]


@contextmanager
def held_night(night: Path) -> Iterator[int]:
    """Hold a night's folder; the handle is inherited by the cells, so that those of a killed night end first.

    Raises `LockedError` where another process is at this night, or cells of a killed one have not ended in a minute.
    """
    handle = os.open(night / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        deadline_s = time.monotonic() + _ENDING_LIMIT_S
        while not _is_locked(handle):
            if time.monotonic() > deadline_s:
                raise LockedError(f"{night}: another 'perfsuite nightly' is at this night; wait for its end")
            time.sleep(0.2)
        yield handle
    finally:
        os.close(handle)


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _link(folder: Path, name: str) -> None:
    """Let the link lead to another night, in one step."""
    fresh = folder / f".{LATEST}-{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(name)
    fresh.replace(folder / LATEST)
