"""A board behind a serial port: a shell on a terminal of its own, and a cable of two terminals to it."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import threading
import tty
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from perfsuite.device.reach import Reach

_LIMIT_S = 10.0


class SerialBoard:
    """A shell that has logged in, or asks who does, at the end of a cable; `path` is the port here."""

    def __init__(self, home: Path, *, asks: str = "", path: str = "") -> None:
        self.home = home
        home.mkdir(exist_ok=True)
        self._near, near = pty.openpty()
        self._far, far = pty.openpty()
        tty.setraw(near)
        self.path = os.ttyname(near)
        #: Changes what passes, by direction, as a bad cable does.
        self.spoil: Callable[[bytes], bytes] = lambda chunk: chunk
        self._over, over = os.pipe()
        self._end, self._kept = over, near
        asked = 'user=; while [ -z "$user" ]; do printf "board login: "; read -r user; done; '
        login = f'{asked}echo "$user" >{home}/user; {asks}exec "$@"'
        command = ("/bin/sh", "-c", login if asks else 'exec "$@"', "sh", "sh", "-i")
        kept = {name: os.environ[name] for name in ("PATH", "PERFSUITE_LOCK_DIR") if name in os.environ}
        kept |= {"PATH": path} if path else {}
        self.process = subprocess.Popen(
            [str(shutil.which("setsid")), "--ctty", *command],
            stdin=far,
            stdout=far,
            stderr=far,
            cwd=home,
            env={**kept, "HOME": str(home), "TMPDIR": str(home)},
        )
        os.close(far)
        for master in (self._near, self._far):
            os.set_blocking(master, False)
        # Each direction by itself: a board that reads nothing is heard all the same.
        ways = ((self._near, self._far), (self._far, self._near))
        self._threads = [threading.Thread(target=self._carry, args=way, daemon=True) for way in ways]
        for thread in self._threads:
            thread.start()

    def _carry(self, source: int, sink: int) -> None:
        while self._over not in select.select([source, self._over], [], [])[0]:
            try:
                left = os.read(source, 1 << 16)
            except BlockingIOError:
                continue
            except OSError:  # the shell has ended
                return
            if source == self._far:
                left = self.spoil(left)
            while left:
                if self._over in select.select([self._over], [sink], [])[0]:
                    return
                try:
                    left = left[os.write(sink, left) :]
                except BlockingIOError:
                    continue
                except OSError:
                    break

    def reach(self, user: str = "") -> Reach:
        """The way to it, at a rate that a test can wait for."""
        return Reach(way="serial", address=f"{user}@{self.path}" if user else self.path, baud=1_500_000)

    def pull(self) -> None:
        os.write(self._end, b"x")
        for thread in self._threads:
            thread.join(_LIMIT_S)

    def stop(self) -> None:
        self.pull()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGHUP)
        self.process.kill()
        self.process.wait(_LIMIT_S)
        for handle in (self._near, self._far, self._over, self._end, self._kept):
            os.close(handle)
