"""A device over a serial console: one process here has the console, and carries all commands over it side by side.

The board needs a POSIX shell with ``stty``, ``mkfifo``, ``base64``, ``dd`` and ``sha256sum``, and a console whose shell
is logged in, or logs in without a password. It carries 8 kB/s at 115200 baud.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from perfsuite.device.reach import Reach
from perfsuite.device.target.console_login import LOGIN_LIMIT_S
from perfsuite.device.target.protocol import explanation
from perfsuite.device.target.shell import refuse_long
from perfsuite.errors import DeviceError, LinkError
from perfsuite.records.own_files import own_python

#: Gives its own input, output and errors to the process that has the console, with a script to run there.
_CLIENT = (
    "import array, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect('\\0' + sys.argv[1])\n"
    "told = sys.argv[2].encode('utf-8', 'surrogateescape')\n"
    "s.sendmsg([len(told).to_bytes(4, 'big')], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0, 1, 2]))])\n"
    "s.sendall(told); status = s.recv(1); sys.exit(status[0] if status else 255)"
)

#: What begins the words of the process that has the console.
OWN_WORDS = "console: "

_KNOWN = ((rf"^{OWN_WORDS}(?P<why>.*)$", "{why}"),)

#: What that process says once the console can be used, and where somebody else here was faster.
READY, TAKEN = "ready", "taken"

#: What a console takes beyond the bytes themselves.
_FRAMES_RATIO = 1.1

_END_LIMIT_S, _TAKEN_LOOK_S = 5.0, 0.5


class SerialLink:
    """A shell behind a serial console."""

    def __init__(self, reach: Reach) -> None:
        user, _, path = reach.address.rpartition("@")
        if not path.startswith("/"):
            raise DeviceError(f"{reach.address!r}: no serial port; name one such as /dev/ttyUSB0, or root@/dev/ttyUSB0")
        self._reach, self._user, self._path = reach, user, path

    @property
    def text(self) -> str:
        """``serial root@/dev/ttyUSB0``."""
        return self._reach.text

    def command_line(self, script: str) -> Sequence[str | bytes]:
        """Return what gives a script to the process that has the console, which is started where there is none."""
        told = script.encode("utf-8", "surrogateescape")
        refuse_long(told)
        name = self._name()
        if not _is_served(name):
            self._serve(name)
        return (sys.executable, "-I", "-S", "-c", _CLIENT, name, told)

    def complaint(self, errors: str) -> str:
        """Explain the words of the process that has the console."""
        return explanation(errors, _KNOWN)

    def seconds_for(self, size_bytes: int) -> float:
        """At ten bits for each of four characters, which are three bytes; and some for their frames and answers."""
        return size_bytes * 4 / 3 * 10 / self._reach.baud * _FRAMES_RATIO

    def close(self) -> None:
        """Let the console go where nobody else here uses it."""
        with suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
            asked.connect(f"\0{self._name()}")
            asked.settimeout(_END_LIMIT_S)
            asked.sendall(struct.pack(">I", 0))
            asked.recv(1)

    def _name(self) -> str:
        """Return what the process that has the console is known by: this user's, and this port's."""
        return f"perfsuite-console-{os.getuid()}-{Path(self._path).resolve()}-{self._user}-{self._reach.baud}"

    def _serve(self, name: str) -> None:
        """Start the process that has the console; one that is about to end may have it for some seconds still."""
        until_s = time.monotonic() + LOGIN_LIMIT_S
        while (said := self._started(name)) != READY and not _is_served(name):
            if said == TAKEN and time.monotonic() < until_s:
                time.sleep(_TAKEN_LOOK_S)
            elif said == TAKEN:
                raise LinkError(
                    f"{self.text}: another program has {self._path}; end it ('fuser {self._path}' names it)"
                )
            else:
                raise LinkError(f"{self.text}: {said or 'the process that has the console ended without a word'}")

    def _started(self, name: str) -> str:
        """Start that process; return what it says once it serves, or cannot."""
        words = [name, self._path, str(self._reach.baud), self._user]
        process = subprocess.Popen(
            own_python("-m", "perfsuite.device.target.console_serving", *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            with process.stdout as told:
                said = told.readline().decode("utf-8", "replace").strip()
            process.wait(LOGIN_LIMIT_S)
        except BaseException:  # a Ctrl-C above all: what serves by then ends by itself, when nobody asks it
            process.kill()
            process.wait()
            raise
        return said


def _is_served(name: str) -> bool:
    """Say whether a process of this user has the console."""
    with socket.socket(socket.AF_UNIX) as asked:
        try:
            asked.connect(f"\0{name}")
        except OSError:
            return False
        return peer_user(asked) == os.getuid()


def peer_user(connected: socket.socket) -> int:
    """Return the account at the other end of a socket."""
    told = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", told)[1])
