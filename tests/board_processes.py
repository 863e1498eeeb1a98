"""Processes of a test board: with mounts of their own, ended with the tests, found by their namespace."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

_STARTER = ThreadPoolExecutor(max_workers=1)
_LIMIT_S = 20.0


@cache
def own_mounts() -> tuple[str, ...]:
    """Return the command that gives a program mounts of its own; empty where there is none.

    A changed root (chroot) is no mount, so that it cannot be made private first. It need not be where the machine's
    mounts are private already, which shows in whether this process sees what another one mounts.
    """
    if shutil.which("unshare") is None:
        return ()
    if _succeeds("unshare", "--mount", "true"):
        return ("unshare", "--mount")
    command = ("unshare", "--mount", "--propagation", "unchanged")
    with tempfile.TemporaryDirectory() as folder:
        if not _succeeds(*command, "mount", "-t", "tmpfs", "none", folder):
            return ()
        if not os.path.ismount(folder):
            return command
        subprocess.run(["umount", folder], check=True, timeout=_LIMIT_S)
    return ()


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False, timeout=_LIMIT_S).returncode == 0


def start_process(*command: str) -> subprocess.Popen[bytes]:
    """Start what dies with this process: with the thread that starts it, in truth, so that is one that stays."""

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    return _STARTER.submit(start).result()


def has_sshd(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=2) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def end_process(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stderr is not None
    process.stderr.close()


def child_of(pid: int) -> int | None:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def processes_beside(init: int, pattern: str) -> tuple[int, ...]:
    """Return the processes in the namespace of this one, except itself, whose command line has a match."""
    own = _namespace_of(init)
    return tuple(
        pid
        for pid in map(int, filter(str.isdecimal, os.listdir("/proc")))
        if pid != init and _namespace_of(pid) == own and re.search(pattern, _command_line(pid))
    )


def _namespace_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""
