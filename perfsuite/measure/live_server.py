"""A local socket that offers lines to any number of subscribers, none of which can hold up who writes."""

from __future__ import annotations

import os
import queue
import selectors
import socket
import stat
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from perfsuite.device.end_requests import signals_held_off
from perfsuite.errors import MeasurementError
from perfsuite.records.live import LiveKernel, LiveLoss, LiveRecord, to_line

if TYPE_CHECKING:
    from perfsuite.measure.board.runs import Hear
    from perfsuite.measure.live import Delivery

#: What waits for a subscriber beside the socket's own buffer; what finds no room is dropped and counted.
BUFFER_BYTES = 1 << 20


class LiveConnection:
    """One connection and what waits for it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.is_gone = False
        self._unsent = bytearray()
        self._n_missed = 0

    @property
    def has_unsent(self) -> bool:
        """Whether something waits for room in the socket."""
        return bool(self._unsent)

    def offer(self, content: bytes, n_lines: int) -> None:
        """Send what the socket takes at once and keep the rest, or drop all of it where too much waits already."""
        told = self._told_loss()
        if len(self._unsent) + len(told) + len(content) > BUFFER_BYTES:
            self._n_missed += n_lines
            return
        self._n_missed = 0
        self._unsent += told
        self._unsent += content
        self.send()

    def send(self) -> None:
        """Send what the socket takes."""
        try:
            while self._unsent:
                del self._unsent[: self.connection.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.is_gone = True

    def tell_loss(self) -> None:
        """Say what was dropped, where nothing came after it that would have said so."""
        self._unsent += self._told_loss()
        self._n_missed = 0
        self.send()

    def listen(self) -> None:
        """Notice where the other side has hung up; it has nothing to say."""
        try:
            self.is_gone = self.is_gone or not self.connection.recv(4096)
        except BlockingIOError:
            pass
        except OSError:
            self.is_gone = True

    def _told_loss(self) -> bytes:
        if not self._n_missed:
            return b""
        return content_of([to_line(LiveLoss(where="subscriber", n_records=self._n_missed))])


def content_of(lines: Sequence[str]) -> bytes:
    """Return lines as they are sent, each with its end."""
    return ("\n".join(lines) + "\n").encode() if lines else b""


#: The newest lines that a subscriber gets which comes late.
BACKLOG_LINES = 2048

#: Lines that are kept or dropped together.
_LINES_AT_ONCE = 64

#: Subscribers at one time; who comes beyond them finds the connection closed.
MOST_SUBSCRIBERS = 16

#: What a path of a Unix socket may have, with its final zero: ``sun_path`` of unix(7).
_LONGEST_PATH_BYTES = 108


class LiveServer:
    """The listening socket and its subscribers, for one thread; use `open_server`."""

    def __init__(self, listener: socket.socket, selector: selectors.BaseSelector) -> None:
        self._listener = listener
        self._selector = selector
        self._subscribers: list[LiveConnection] = []
        self._backlog: deque[str] = deque(maxlen=BACKLOG_LINES)
        self._n_forgotten = 0
        selector.register(listener, selectors.EVENT_READ)

    @property
    def has_subscribers(self) -> bool:
        """Whether anybody is listening."""
        return bool(self._subscribers)

    def watch(self, descriptor: int) -> None:
        """Let `wait` return when a descriptor is readable, too."""
        self._selector.register(descriptor, selectors.EVENT_READ)

    def publish(self, lines: Sequence[str], *, is_kept: bool = True) -> None:
        """Offer lines to every subscriber; those that are kept reach who comes later as well."""
        if not lines:
            return
        if is_kept:
            self._n_forgotten += max(0, len(self._backlog) + len(lines) - BACKLOG_LINES)
            self._backlog.extend(lines)
        if self._subscribers:
            for at in range(0, len(lines), _LINES_AT_ONCE):
                self._offer(lines[at : at + _LINES_AT_ONCE])
            self._settle()

    def _offer(self, lines: Sequence[str]) -> None:
        content = content_of(lines)
        for subscriber in self._subscribers:
            subscriber.offer(content, len(lines))

    def wait(self, limit_s: float) -> None:
        """Serve until something was served, a watched descriptor is readable, or the time is over."""
        for key, events in self._selector.select(limit_s):
            if key.fileobj is self._listener:
                self._accept()
            elif isinstance(key.data, LiveConnection):
                if events & selectors.EVENT_READ:
                    key.data.listen()
                if events & selectors.EVENT_WRITE:
                    key.data.send()
        self._settle()

    def flush(self, limit_s: float) -> None:
        """Hand over what waits, as far as the subscribers take it in time."""
        for subscriber in self._subscribers:
            subscriber.tell_loss()
        self._settle()
        deadline_s = time.monotonic() + limit_s
        while any(each.has_unsent for each in self._subscribers) and time.monotonic() < deadline_s:
            self.wait(deadline_s - time.monotonic())

    def close(self) -> None:
        """Hang up."""
        for subscriber in self._subscribers:
            subscriber.connection.close()
        self._subscribers.clear()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it was gone before it was served
            return
        if len(self._subscribers) >= MOST_SUBSCRIBERS:
            connection.close()
            return
        connection.setblocking(False)
        subscriber = LiveConnection(connection)
        self._subscribers.append(subscriber)
        self._selector.register(connection, selectors.EVENT_READ, subscriber)
        missed = [to_line(LiveLoss(where="backlog", n_records=self._n_forgotten))] if self._n_forgotten else []
        lines = [*missed, *self._backlog]
        subscriber.offer(content_of(lines), len(lines))

    def _settle(self) -> None:
        """Forget who has gone, and wait for room only where something waits for it."""
        for subscriber in [each for each in self._subscribers if each.is_gone]:
            self._selector.unregister(subscriber.connection)
            subscriber.connection.close()
            self._subscribers.remove(subscriber)
        for subscriber in self._subscribers:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if subscriber.has_unsent else 0)
            if self._selector.get_key(subscriber.connection).events != events:
                self._selector.modify(subscriber.connection, events, subscriber)


@contextmanager
def open_server(path: Path) -> Iterator[LiveServer]:
    """Listen at `path`, in a folder that is the user's alone and is made where there is none; remove the socket after.

    A socket that a killed run has left there is replaced.

    Raises `MeasurementError` where the folder is open to others, something else lies at `path` or answers there, or the
    path is too long.
    """
    _check_path(path)
    with selectors.DefaultSelector() as selector, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(str(path))
            own = path.stat()
            listener.listen(MOST_SUBSCRIBERS)
        except OSError as error:
            raise MeasurementError(f"{path}: no socket can be made there ({error.strerror})") from error
        listener.setblocking(False)
        server = LiveServer(listener, selector)
        try:
            yield server
        finally:
            server.close()
            with suppress(FileNotFoundError):
                if os.path.samestat(own, path.stat()):
                    path.unlink()


def _check_path(path: Path) -> None:
    if len(os.fsencode(path)) >= _LONGEST_PATH_BYTES:
        raise MeasurementError(
            f"{path}: too long for a socket's path; use one of less than {_LONGEST_PATH_BYTES} bytes"
        )
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        folder = path.parent.stat()
    except OSError as error:
        raise MeasurementError(f"{path.parent}: cannot be used for a socket ({error.strerror})") from error
    if folder.st_uid != os.geteuid() or folder.st_mode & 0o077:
        raise MeasurementError(
            f"{path.parent}: has mode {stat.S_IMODE(folder.st_mode):04o} and owner {folder.st_uid}, "
            "expected a folder of your own with mode 0700"
        )
    _remove_stale(path)


def _remove_stale(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise MeasurementError(f"{path}: is not a socket; name a path where there is nothing")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise MeasurementError(f"{path}: another run may be using it ({error.strerror})") from error
        else:
            raise MeasurementError(f"{path}: another run offers its records there; name another path")


#: Longest wait for a record; subscribers are served meanwhile.
_WAIT_S = 1.0

#: Longest that the end of a run waits for slow subscribers, after everything was measured.
_FLUSH_S = 0.5


@contextmanager
def published(socket_path: Path) -> Iterator[Hear]:
    """Offer what is heard at a socket, which is there for as long as the context lasts.

    Raises `MeasurementError` where nothing can listen there.
    """
    records: queue.SimpleQueue[LiveRecord] = queue.SimpleQueue()
    is_over = threading.Event()
    woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def hear(delivery: Delivery) -> None:
        records.put(delivery.record)
        os.eventfd_write(woken, 1)

    def serve(server: LiveServer) -> None:
        while not is_over.is_set():
            server.wait(_WAIT_S)
            with suppress(BlockingIOError):
                os.eventfd_read(woken)
            _publish(server, records)
        server.wait(0)  # who has just come
        _publish(server, records)
        server.flush(_FLUSH_S)

    try:
        with open_server(socket_path) as server:
            server.watch(woken)
            thread = threading.Thread(target=serve, args=(server,), name="perfsuite-live", daemon=True)
            with signals_held_off():
                thread.start()
            try:
                yield hear
            finally:
                is_over.set()
                os.eventfd_write(woken, 1)
                thread.join()
    finally:
        os.close(woken)


def _publish(server: LiveServer, records: queue.SimpleQueue[LiveRecord]) -> None:
    """Publish what has come; kernels are not kept for who comes later."""
    found: list[LiveRecord] = []
    with suppress(queue.Empty):
        while True:
            found.append(records.get_nowait())
    for is_kernel, some in groupby(found, lambda each: isinstance(each, LiveKernel)):
        server.publish([to_line(each) for each in some], is_kept=not is_kernel)
