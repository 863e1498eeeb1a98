"""Subscribes to the records of a run while it goes on."""

from __future__ import annotations

import socket
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfsuite.errors import MeasurementError
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.plan import WORKER_LIMIT_S, LlamaPlan
from perfsuite.records.live import LiveEnd, LiveKernel, LivePhase, LiveRecord, LiveToken, from_line

if TYPE_CHECKING:
    from perfsuite.measure.board.protocol import Board

#: How often a socket is looked for that is not there yet.
_RETRY_S = 0.01


def connect(
    connection: socket.socket,
    path: Path,
    *,
    limit_s: float,
    is_over: Callable[[], bool] = lambda: False,
    announce_wait: Callable[[], None] = lambda: None,
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
            raise MeasurementError(f"{path}: cannot be subscribed to (it is not a socket)") from error
        return error
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be subscribed to ({error.strerror or error})") from error
    return None


def _is_something_else(path: Path) -> bool:
    """Tell whether something is there that is no socket; of what comes or goes at this moment it says nothing."""
    try:
        return not stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


#: What a plan names for the socket of its run, in the run's own folder.
LIVE_SOCKET = str(RUN_FOLDER / "live.sock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A record and when it came."""

    record: LiveRecord
    #: On the clock of the record's own times.
    arrival_ns: int
    #: From the end of what is recorded to the arrival; None where the record has no end, or had ended before the
    #: subscription began.
    delay_ns: int | None


def subscribe(socket_path: Path, *, limit_s: float) -> Iterator[LiveRecord]:
    """Yield the records of a run as they come, until it ends.

    What was sent before the subscription comes first, as far as the publisher still has it.

    `limit_s` is the longest wait for the socket, and then for each record.

    Raises `MeasurementError` where the path is no socket; there was none or no record for `limit_s`, or no end record:
    the run was killed, or had to wait for this subscriber at its end.
    """
    return (delivery.record for delivery in deliveries(socket_path, limit_s=limit_s))


def deliveries(
    socket_path: Path,
    *,
    limit_s: float,
    is_over: Callable[[], bool] = lambda: False,
    announce_wait: Callable[[], None] = lambda: None,
) -> Iterator[Delivery]:
    """Yield records as `subscribe` does, with the times of their arrival; nothing where `is_over` before the socket.

    `announce_wait` is called once where nobody listens yet.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        if not connect(connection, socket_path, limit_s=limit_s, is_over=is_over, announce_wait=announce_wait):
            return
        since_ns = time.monotonic_ns()
        connection.settimeout(limit_s)
        for line, arrival_ns in _lines(connection, socket_path):
            record = from_line(line)
            if record is None:
                continue
            yield Delivery(record=record, arrival_ns=arrival_ns, delay_ns=delay_ns(record, arrival_ns, since_ns))
            if isinstance(record, LiveEnd):
                return
    raise MeasurementError(f"{socket_path}: cut off before the end of the run: it was killed, or its wait timed out")


def _lines(connection: socket.socket, path: Path) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines, each with the time at which its last part came."""
    unread = b""
    while chunk := _chunk(connection, path):
        arrival_ns = time.monotonic_ns()
        *lines, unread = (unread + chunk).split(b"\n")
        for line in lines:
            yield line, arrival_ns


def _chunk(connection: socket.socket, path: Path) -> bytes:
    try:
        return connection.recv(1 << 16)
    except TimeoutError as error:
        raise MeasurementError(f"{path}: no record for {connection.gettimeout():g} s") from error
    except ConnectionError:
        return b""


def delay_ns(record: LiveRecord, arrival_ns: int, since_ns: int) -> int | None:
    """Return how long after the end of what is recorded it arrived; as `Delivery.delay_ns`."""
    if not isinstance(record, LivePhase | LiveToken | LiveKernel) or record.end_ns is None:
        return None
    return arrival_ns - record.end_ns if record.end_ns >= since_ns else None


def run_live(
    plan: LlamaPlan,
    consume: Callable[[Delivery], None],
    board: Board,
    *,
    extra_environment: Mapping[str, str] | None = None,
    limit_s: float = WORKER_LIMIT_S,
) -> dict[str, Any]:
    """Run a plan in a fresh process, and give each of its records to `consume` while it runs; return the payload.

    What `consume` raises ends the run.

    Raises `MeasurementError` as `Board.run` and `subscribe` do.
    """
    offering = replace(plan, live_socket=LIVE_SOCKET)
    return board.run(offering, extra_environment=extra_environment, hear=consume, limit_s=limit_s)
