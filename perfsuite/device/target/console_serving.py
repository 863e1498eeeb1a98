"""The process that has a serial console, and carries the commands of all programs of its user here over it.

Each client hands over its pipes and a script, and gets how that ended. It ends itself a while after the last one.
"""

from __future__ import annotations

import base64
import hashlib
import os
import selectors
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from perfsuite.device.target.console_login import Console, log_in
from perfsuite.device.target.serial import OWN_WORDS, READY, TAKEN, peer_user
from perfsuite.errors import LinkError

#: It outlives its last client by this, s; how often either end says that it is there, and how much silence is too much.
_PERSIST_S, _PING_S, _SILENCE_LIMIT_S = 10.0, 5.0, 30.0

#: How many pieces of a command's input are on their way at once: few enough for what a port keeps.
_MOST_PIECES = 2

_LOST_STATUS = 255
_LOOK_S = 0.5


@dataclass(slots=True, kw_only=True, eq=False)
class _Channel:
    """A command there, and the client here."""

    number: int
    client: socket.socket
    #: Its input, output and errors; None once it is closed.
    pipes: list[int | None]
    #: Pieces of the script that are to be sent, before its input is.
    script: deque[bytes]
    n_on_the_way: int = 0
    takes_input: bool = False
    is_read: bool = False
    #: By the letter of output and errors: what the client has not taken yet.
    unwritten: dict[str, bytearray] = field(default_factory=lambda: {"o": bytearray(), "e": bytearray()})
    status: int | None = None


class ConsoleServer:
    """One console, and the channels over it."""

    def __init__(self, console: Console, listening: socket.socket) -> None:
        self._console, self._listening = console, listening
        self._mark = f"@{console.token} ".encode()
        self._channels: dict[int, _Channel] = {}
        self._n_opened = 0
        self._unread, self._unsent = bytearray(console.unread), bytearray()
        self._idle_s = self._heard_s = self._pinged_s = time.monotonic()
        self._is_over = False

    def serve(self) -> None:
        """Carry commands until nobody has any for a while, or the console is lost."""
        try:
            while not self._is_over:
                self._look()
        except LinkError as error:
            for channel in list(self._channels.values()):
                self._lose(channel, str(error))
        finally:
            with suppress(OSError):
                os.set_blocking(self._console.handle, True)
                os.write(self._console.handle, b"\nbye\n")

    def _look(self) -> None:
        """Do what can be done now, and wait for more."""
        now = time.monotonic()
        if self._channels:
            self._idle_s = now
        if now - self._idle_s > _PERSIST_S:
            self._let_go()
            return
        if now - self._heard_s > _SILENCE_LIMIT_S:
            raise LinkError(f"the board has said nothing for {_SILENCE_LIMIT_S:.0f} s; is it up, and the cable in?")
        if now - self._pinged_s > _PING_S:
            self._pinged_s = now
            self._unsent += b"p\n"
        with selectors.DefaultSelector() as selector:
            for handle, (events, act) in self._wanted().items():
                selector.register(handle, events, act)
            for key, events in selector.select(_LOOK_S):
                key.data(events)

    def _wanted(self) -> dict[int, tuple[int, Callable[[int], None]]]:
        """Return what is waited for, and what is done then."""
        read, write = selectors.EVENT_READ, selectors.EVENT_WRITE
        wanted: dict[int, tuple[int, Callable[[int], None]]] = {
            self._listening.fileno(): (read, lambda _: self._accept()),
            self._console.handle: (read | (write if self._unsent else 0), self._exchange),
        }
        for channel in list(self._channels.values()):
            wanted[channel.client.fileno()] = (read, lambda _, each=channel: self._leave(each))  # type: ignore[misc]
            source = channel.pipes[0]
            if source is not None and channel.takes_input and channel.n_on_the_way < _MOST_PIECES:
                wanted[source] = (read, lambda _, each=channel: self._send_input(each))  # type: ignore[misc]
            for kind, place in (("o", 1), ("e", 2)):
                sink = channel.pipes[place]
                if sink is not None and channel.unwritten[kind]:
                    give = lambda _, each=channel, kind=kind, place=place: self._give(each, kind, place)  # noqa: E731
                    wanted[sink] = (write, give)
        return wanted

    def _accept(self) -> None:
        """Take a client, whose script arrives at once."""
        client, _ = self._listening.accept()
        client.settimeout(_SILENCE_LIMIT_S)
        try:
            if peer_user(client) != os.getuid():
                raise OSError
            head, handles, _, _ = socket.recv_fds(client, 4, 3)
            (length,) = struct.unpack(">I", head)
            if not length:
                self._let_go()
                raise OSError
            told = bytearray()
            while len(told) < length:
                told += client.recv(length - len(told)) or b"\0" * length
        except (OSError, struct.error):
            client.close()
            return
        self._n_opened += 1
        size = self._console.piece_bytes
        pieces = deque(bytes(told[start : start + size]) for start in range(0, length, size))
        channel = _Channel(number=self._n_opened, client=client, pipes=[*handles], script=pieces)
        self._channels[channel.number] = channel
        for handle in handles[1:]:
            os.set_blocking(handle, False)
        self._send_script(channel)

    def _let_go(self) -> None:
        """End where nobody has a command any more."""
        if not self._channels:
            self._is_over = True
            self._listening.close()

    def _send_script(self, channel: _Channel) -> None:
        while channel.script and channel.n_on_the_way < _MOST_PIECES:
            self._send("s", channel, channel.script.popleft())
            if not channel.script:
                self._unsent += f"o {channel.number}\n".encode()

    def _send(self, verb: str, channel: _Channel, piece: bytes) -> None:
        text = base64.b64encode(piece)
        self._unsent += b"%s %d %s %s\n" % (verb.encode(), channel.number, _hash_of(text), text)
        channel.n_on_the_way += 1

    def _send_input(self, channel: _Channel) -> None:
        source = channel.pipes[0]
        assert source is not None
        with suppress(BlockingIOError):
            if piece := os.read(source, self._console.piece_bytes):
                self._send("i", channel, piece)
            else:
                self._end_input(channel)

    def _end_input(self, channel: _Channel) -> None:
        if channel.pipes[0] is not None:
            os.close(channel.pipes[0])
            channel.pipes[0] = None
            self._unsent += f"c {channel.number}\n".encode()

    def _leave(self, channel: _Channel) -> None:
        """Let a client go that is not there any more; its command hears of it by the end of its input."""
        self._end_input(channel)
        self._close(channel)

    def _give(self, channel: _Channel, kind: str, place: int) -> None:
        sink = channel.pipes[place]
        assert sink is not None
        try:
            del channel.unwritten[kind][: os.write(sink, channel.unwritten[kind])]
        except BlockingIOError:
            return
        except OSError:  # nobody reads it any more
            channel.unwritten[kind].clear()
        self._end_if_over(channel)

    def _end_if_over(self, channel: _Channel) -> None:
        """Tell a client how its command ended, once it has all that was written."""
        if channel.status is not None and not any(channel.unwritten.values()):
            with suppress(OSError):
                channel.client.sendall(bytes([channel.status & 0xFF]))
            self._close(channel)

    def _lose(self, channel: _Channel, why: str) -> None:
        sink = channel.pipes[2]
        with suppress(OSError):
            if sink is not None:
                os.write(sink, f"\n{OWN_WORDS}{why}\n".encode())
            channel.client.sendall(bytes([_LOST_STATUS]))
        self._close(channel)

    def _close(self, channel: _Channel) -> None:
        for handle in channel.pipes:
            if handle is not None:
                os.close(handle)
        channel.pipes = [None, None, None]
        channel.client.close()
        self._channels.pop(channel.number, None)

    def _exchange(self, events: int) -> None:
        """Write to the console what it takes, and read what is there."""
        try:
            if events & selectors.EVENT_WRITE:
                del self._unsent[: os.write(self._console.handle, self._unsent[:4096])]
            if events & selectors.EVENT_READ:
                chunk = os.read(self._console.handle, 1 << 16)
                if not chunk:
                    raise OSError
                self._unread += chunk
        except BlockingIOError:
            return
        except OSError:
            raise LinkError("the console is gone: the cable was pulled, or the board is off") from None
        *lines, rest = self._unread.split(b"\n")
        self._unread = bytearray(rest)
        for line in lines:
            _, mark, told = bytes(line).partition(self._mark)
            if mark:
                self._hear(told.rstrip(b"\r").split(b" "))

    def _hear(self, words: list[bytes]) -> None:
        """Act on what the script there says."""
        self._heard_s = time.monotonic()
        kind = words[0].decode("ascii", "replace")
        if kind == "end" or kind == "b":
            raise LinkError(
                "the shell there ended" if kind == "end" else "what was sent came changed; try a lower rate"
            )
        number = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
        channel = self._channels.get(number)
        if kind in ("o", "e"):
            if len(words) != 4 or _hash_of(words[3]) != words[2]:
                raise LinkError("what the board said came changed; does something else write to the console?")
            place = 1 if kind == "o" else 2
            if channel is not None and channel.pipes[place] is not None:
                channel.unwritten[kind] += base64.b64decode(words[3])
        elif channel is not None and kind == "k":
            channel.n_on_the_way -= 1
            self._send_script(channel)
        elif channel is not None and kind == "r":
            channel.takes_input = True
        elif channel is not None and kind == "x":
            channel.status = int(words[2]) if len(words) > 2 and words[2].isdigit() else _LOST_STATUS
            self._end_if_over(channel)


def _hash_of(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:16].encode()


def main(name: str, path: str, baud: str, user: str) -> int:
    """Take a console, say ``ready``, and serve until nobody needs it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(f"\0{name}")
        except OSError:
            print(TAKEN, flush=True)
            return 1
        try:
            console = log_in(path, int(baud), user)
        except LinkError as error:
            print(error, flush=True)
            return 1
        listening.listen()
        if os.fork():  # whoever asked for it is not its parent: it may be there longer
            os._exit(0)
        print(READY, flush=True)
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, sys.stdout.fileno())
        os.close(nobody)
        ConsoleServer(console, listening).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
