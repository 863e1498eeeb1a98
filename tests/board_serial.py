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

    def __init__(self, home: Path, *, shell: tuple[str, ...] = ("sh", "-i"), asks: str = "", path: str = "") -> None:
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
        command = ("/bin/sh", "-c", login if asks else 'exec "$@"', "sh", *shell)
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
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def _carry(self) -> None:
        others = {self._near: self._far, self._far: self._near}
        while True:
            ready, _, _ = select.select([*others, self._over], [], [])
            if self._over in ready:
                return
            for each in ready:
                try:
                    chunk = os.read(each, 1 << 16)
                except OSError:  # the shell has ended
                    del others[each]
                    continue
                with suppress(OSError):
                    left = self.spoil(chunk) if each == self._far else chunk
                    while left:
                        left = left[os.write(others.get(each, self._near), left) :]

    def reach(self, user: str = "") -> Reach:
        """The way to it, at a rate that a test can wait for."""
        return Reach(way="serial", address=f"{user}@{self.path}" if user else self.path, baud=1_500_000)

    def pull(self) -> None:
        """Pull the cable: nothing passes any more."""
        os.write(self._end, b"x")
        self._thread.join(_LIMIT_S)

    def stop(self) -> None:
        if self._thread.is_alive():
            self.pull()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGHUP)
        self.process.kill()
        self.process.wait(_LIMIT_S)
        for handle in (self._near, self._far, self._over, self._end, self._kept):
            os.close(handle)
