"""The lock of a history's folder: it spares needless work, and keeps two from renewing one copy."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfsuite.errors import HistoryError
from perfsuite.records.own_files import open_lock

_POLL_S = 0.05


@contextmanager
def held_folder(history_dir: Path, limit_s: float) -> Iterator[bool]:
    """Hold the folder's lock where it comes free in time; file systems that know no locks go without."""
    try:
        history_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HistoryError(f"{history_dir}: cannot be written ({error.strerror})") from error
    handle = open_lock(history_dir / ".lock", HistoryError)
    try:
        yield _is_locked(handle, limit_s)
    except OSError as error:
        raise HistoryError(f"{history_dir}: cannot be written ({error.strerror})") from error
    finally:
        os.close(handle)


def _is_locked(handle: int, limit_s: float) -> bool:
    end_s = time.monotonic() + limit_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end_s:
                return False
            time.sleep(_POLL_S)
        except OSError:
            return True
        else:
            return True
