"""Finds the socket of a run that may be yet to begin."""

from __future__ import annotations

import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path

from perfsuite.errors import MeasurementError

#: How often a socket is looked for that is not there yet.
_RETRY_S = 0.01


def never() -> bool:
    """Tell that it is not over."""
    return False


def silent() -> None:
    """Announce nothing."""


def connect(
    connection: socket.socket,
    path: Path,
    *,
    limit_s: float,
    is_over: Callable[[], bool] = never,
    announce_wait: Callable[[], None] = silent,
) -> bool:
    """Connect as soon as somebody listens; return False where it is over before.

    `announce_wait` is called once where nobody listens yet.

    Raises `MeasurementError` where nobody listened for `limit_s`, or nobody will: what is there is no socket, or not
    for us.
    """
    deadline_s = time.monotonic() + limit_s
    is_announced = False
    while not is_over():
        obstacle = _obstacle(connection, path)
        if obstacle is None:
            return True
        if time.monotonic() > deadline_s:
            raise MeasurementError(f"{path}: nobody offers records there ({obstacle.strerror})") from obstacle
        if not is_announced:
            announce_wait()
            is_announced = True
        time.sleep(_RETRY_S)
    return False


def _obstacle(connection: socket.socket, path: Path) -> OSError | None:
    """Connect; return why nobody listens yet, and raise where waiting does not help."""
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError, BlockingIOError) as error:
        if _is_something_else(path):
            raise MeasurementError(f"{path}: cannot be subscribed to (it is no socket)") from error
        return error
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be subscribed to ({error.strerror or error})") from error
    return None


def _is_something_else(path: Path) -> bool:
    """Tell whether something is there that is no socket; of what comes or goes at this moment it is not told."""
    try:
        return not stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False
