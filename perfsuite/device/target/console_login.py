"""Getting at the shell behind a serial console: the port here, a login there, and the script for commands."""

from __future__ import annotations

import base64
import fcntl
import os
import re
import secrets
import select
import termios
import time
import tty
from dataclasses import dataclass
from importlib.resources import files

from perfsuite.device.target.protocol import last_line
from perfsuite.device.target.shell import one_line
from perfsuite.errors import LinkError

#: Longest for a prompt to appear, and for the script to be there: a slow board's login takes seconds.
LOGIN_LIMIT_S = 30.0
_LOOK_S = 1.0
_TAKING_LIMIT_S = 3.0

#: How many bytes pass in a piece: what takes a fifth of a second, so that commands side by side do not wait long.
_PIECE_S, _LEAST_BYTES, _MOST_BYTES = 0.2, 384, 12288

_START = (
    "o=$(stty -g) && stty raw -echo || exit; "
    'for d in "$TMPDIR" /tmp /dev/shm "$HOME" /data/local/tmp; do [ -d "$d" ] && [ -w "$d" ] && break; done; '
    "d=$d/.perfsuite-console-{token}; k=$(cat /proc/sys/kernel/printk 2>/dev/null); "
    "{{ echo 1 >/proc/sys/kernel/printk; }} 2>/dev/null; "  # the kernel's words would come in between
    'mkdir -m 700 "$d" && echo "@{token} send" && read -r s && printf %s "$s" | base64 -d >"$d/console" && '
    'sh "$d/console" mux {token} {piece}; '
    '{{ echo "$k" >/proc/sys/kernel/printk; }} 2>/dev/null; rm -rf "$d"; stty "$o"; echo "@{token} end"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """A console on which the script runs that carries commands."""

    handle: int
    token: str
    piece_bytes: int
    #: What has come after the login and is not read yet.
    unread: bytes


def piece_bytes(baud: int) -> int:
    """Return how many bytes pass in one line at a rate, at ten bits each and four characters for three of them."""
    return max(_LEAST_BYTES, min(_MOST_BYTES, int(baud / 10 * _PIECE_S * 3 / 4) // 3 * 3))


def opened_console(path: str, baud: int) -> int:
    """Open a serial port for this process alone. Raises LinkError: there is none, or somebody has it."""
    rate = getattr(termios, f"B{baud}", None)
    if rate is None:
        raise LinkError(f"{path}: {baud} baud is not a rate of this machine's ports; 115200 is usual")
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except PermissionError:
        raise LinkError(
            f"{path}: this user may not open it; 'sudo usermod -aG dialout USER', and log in anew"
        ) from None
    except OSError as error:
        raise LinkError(f"{path}: {error.strerror}; is the cable plugged in? 'ls /dev/tty*' lists ports") from None
    _take(path, handle)
    try:
        tty.setraw(handle)
        settings = termios.tcgetattr(handle)
        settings[2] = settings[2] & ~(termios.HUPCL | termios.CRTSCTS) | termios.CLOCAL | termios.CREAD
        settings[4] = settings[5] = rate
        termios.tcsetattr(handle, termios.TCSANOW, settings)
    except termios.error as error:
        os.close(handle)
        raise LinkError(f"{path}: is not a serial port ({error})") from None
    return handle


def _take(path: str, handle: int) -> None:
    """Let no other program of this suite have a port; one that is just letting go of it is waited for."""
    until_s = time.monotonic() + _TAKING_LIMIT_S
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > until_s:
                os.close(handle)
                raise LinkError(f"{path}: another program here uses this console; end it, then run it again") from None
        time.sleep(0.05)


def log_in(path: str, baud: int, user: str, *, limit_s: float = LOGIN_LIMIT_S) -> Console:
    """Find the shell of a console, as a user where it asks for one, and let the script run there that carries commands.

    Raises LinkError: nothing or no shell answers, or a password is asked for.
    """
    token, piece = secrets.token_hex(4), piece_bytes(baud)
    talk = _Talk(handle=opened_console(path, baud), path=path, until_s=time.monotonic() + limit_s)
    try:
        _find_shell(talk, token, user)
        script = (files("perfsuite.device.target") / "console.sh").read_bytes()
        talk.say(one_line(_START.format(token=token, piece=piece)).removeprefix("exec ") + "\n")
        talk.hear(f"@{token} send", "a shell with stty, mkdir and base64")
        talk.say(base64.b64encode(script).decode() + "\n")
        talk.hear(f"@{token} p", "a shell with mkfifo, sha256sum and base64")
    except BaseException:
        os.close(talk.handle)
        raise
    return Console(handle=talk.handle, token=token, piece_bytes=piece, unread=talk.heard)


def _find_shell(talk: _Talk, token: str, user: str) -> None:
    """Have a shell say a word; what is written to it is not what it says, wherever it is echoed."""
    # A line's end alone first: whatever else is said would be taken for a user's name by who asks for one.
    question, says = f"bye\necho perfsuite''-{token}\n", "\n"
    while True:
        talk.say(says)
        says = question
        while talk.more(_LOOK_S):
            if f"perfsuite-{token}".encode() in talk.heard:
                return
            if re.search(rb"[Pp]assword:\s*$", talk.heard):
                raise talk.refused(
                    "asks for a password, which is given to nobody here; log in once by hand (picocom), or let the "
                    "board log in by itself (agetty --autologin)"
                )
            if re.search(rb"login:\s*$", talk.heard):
                if not user:
                    raise talk.refused("asks who logs in; name the user in its address: serial:root@/dev/ttyUSB0")
                talk.heard, says = b"", f"{user}\n"
                break
        if time.monotonic() > talk.until_s:
            said = f"it says: {last_line(talk.heard.decode('utf-8', 'replace'))}" if talk.heard.strip() else "silence"
            raise talk.refused(f"no shell answers ({said}); is the board up, and the rate right?")


@dataclass(slots=True, kw_only=True)
class _Talk:
    """What is said and heard on a console before the script runs."""

    handle: int
    path: str
    until_s: float
    heard: bytes = b""

    def say(self, text: str) -> None:
        left = text.encode()
        while left:
            if not select.select([], [self.handle], [], max(0.0, self.until_s - time.monotonic()))[1]:
                raise self.refused("takes nothing; is the cable plugged in?")
            left = left[os.write(self.handle, left[:512]) :]

    def more(self, limit_s: float) -> bool:
        """Hear what comes; say whether something did."""
        if not select.select([self.handle], [], [], limit_s)[0]:
            return False
        try:
            chunk = os.read(self.handle, 4096)
        except OSError:
            chunk = b""
        self.heard += chunk
        return bool(chunk)

    def hear(self, word: str, needed: str) -> None:
        """Hear up to a word."""
        told = f"{word}".encode()
        while told not in self.heard:
            if not self.more(max(0.0, self.until_s - time.monotonic())):
                said = last_line(self.heard.decode("utf-8", "replace"))
                raise self.refused(f"{needed} is needed there; it says: {said}")
        self.heard = self.heard.partition(told)[2]

    def refused(self, why: str) -> LinkError:
        return LinkError(f"{self.path}: {why}")
