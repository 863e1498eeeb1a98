"""A simpler board to test with: an sshd on a loopback port, run by whoever runs the tests, without namespaces.

By the fixture ``loopback_board`` of tests/conftest.py. It has the processes, the files and the name of this machine;
only its home is its own: ``board.home``, and as root /run with the device's lock. ``board.reach()`` leads to it,
``board.stop()`` ends it.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from perfsuite.device.reach import Reach
from perfsuite.device.work_folder import new_work_folder

from .board_keys import INSTALL, SSHD, SshdFiles
from .board_processes import free_port, own_mounts

_LIMIT_S = 20.0

#: How many ports are tried: one that was free may be somebody else's a moment later.
_N_PORTS = 5


@cache
def loopback_obstacle() -> str | None:
    missing = [name for name in ("ssh", "ssh-keygen", "setpriv") if shutil.which(name) is None]
    missing += [] if SSHD else ["sshd"]
    if missing:
        return f"there is no {missing[0]}; {INSTALL}"
    return "this machine allows root no mounts of its own" if os.geteuid() == 0 and not own_mounts() else None


class LoopbackBoard:
    """A board, whose sessions have some variables more; see the top of this module."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = variables or {}
        self._work = new_work_folder(tempfile.gettempdir())
        self.folder = self._work.path
        self.home = self.folder / "home"
        self.home.mkdir()
        self._sshd: subprocess.Popen[bytes] | None = None
        try:
            for _ in range(_N_PORTS):
                if self._has_started(free_port()):
                    return
            raise AssertionError(f"no sshd on a loopback port: {self._log.read_text()}")
        except BaseException:
            self.stop()
            raise

    def reach(self) -> Reach:
        return self.files.reach()

    def stop(self) -> None:
        if self._sshd is not None:
            self._sshd.terminate()
            self._sshd.wait(_LIMIT_S)
        self._work.remove()

    @property
    def _log(self) -> Path:
        return self.folder / "sshd.log"

    def _has_started(self, port: int) -> bool:
        """Start its sshd, and wait until that listens itself; False where somebody else took the port meanwhile."""
        self.files = SshdFiles(folder=self.folder, address="127.0.0.1", port=port, user=getpass.getuser())
        self.files.write({"HOME": str(self.home), **self._variables})
        self._log.write_text("")
        self._sshd = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *_own_run(), *self.files.command],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + _LIMIT_S
        while f"Server listening on 127.0.0.1 port {port}" not in self._log.read_text():
            if self._sshd.poll() is not None:
                return False
            assert time.monotonic() < end, "no sshd on a loopback port"
            time.sleep(0.02)
        return True


def _own_run() -> list[str]:
    """As root, sshd needs a folder in /run, which must not be left there: it gets a /run of its own.

    The device's lock is there, and another file in the place of the one in /tmp, so that runs of the tests side by side
    do not contend for this machine's.
    """
    folders = "mkdir -m 755 /run/sshd && mkdir -m 1777 /run/lock"
    lock = "/tmp/perfsuite.lock"
    folders += f" && touch {lock} /run/lock.of-tmp && chmod 666 {lock} /run/lock.of-tmp"
    folders += f" && mount --bind /run/lock.of-tmp {lock}"
    mounts = f'mount -t tmpfs -o mode=755 board /run && {folders} && exec "$@"'
    return [*own_mounts(), "sh", "-c", mounts, "sh"] if os.geteuid() == 0 else []
