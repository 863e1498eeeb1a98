"""Stand-ins of a phone behind adb: Android's shell and its tools, and nothing of Debian's.

`fake_adb` has a program ``adb`` of its own, which joins its arguments by blanks as adb does. `adb_server` is reached by
the real client, and speaks to it as adb's server does. Either runs commands in mksh with a PATH of toybox's tools.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest

#: What Android's toybox has and Debian's leaves out, for its authors call it unfinished.
_UNFINISHED = ("dd", "stty", "tr")

_FAKE = """\
#!/bin/sh
[ "$1" != -s ] || shift 2
[ "$1 $2" = "shell -T" ] || exit 9
shift 2
exec {enter} sh -c "$*"
"""

_REFUSING = """\
#!/bin/sh
echo {words} >&2
exit 1
"""


def phone_obstacle(*programs: str) -> str | None:
    missing = [name for name in ("mksh", "toybox", "busybox", *programs) if shutil.which(name) is None]
    return f"there is no {missing[0]}; 'make test-needs' installs it" if missing else None


def plant_tools(folder: Path) -> None:
    toybox, busybox, shell = (str(shutil.which(name)) for name in ("toybox", "busybox", "mksh"))
    folder.mkdir()
    names = subprocess.run([toybox], capture_output=True, text=True, check=True, timeout=20).stdout.split()
    for name in names:
        (folder / name).symlink_to(toybox)
    for name in _UNFINISHED:
        if name not in names:
            (folder / name).symlink_to(busybox)
    (folder / "sh").symlink_to(shell)


def phone_environment(folder: Path) -> dict[str, str]:
    """Make a phone's home and tools in a folder, and return the variables that its shell has."""
    home, tools = folder / "home", folder / "system-bin"
    home.mkdir()
    plant_tools(tools)
    kept = {name: os.environ[name] for name in ("PERFSUITE_LOCK_DIR",) if name in os.environ}
    return {"PATH": str(tools), "HOME": str(home), "TMPDIR": str(folder), **kept}


@contextmanager
def fake_adb(folder: Path) -> Iterator[Path]:
    """Let ``adb`` lead to a phone's shell here while this lasts; give its home."""
    if obstacle := phone_obstacle():
        pytest.skip(f"boards: {obstacle}")
    environment = phone_environment(folder)
    enter = shlex.join(["env", "-i", *(f"{name}={text}" for name, text in environment.items())])
    with _first_on_the_path(folder, _FAKE.format(enter=enter)):
        yield folder / "home"


@contextmanager
def refusing_adb(folder: Path, words: str) -> Iterator[None]:
    """Let ``adb`` say so and fail while this lasts."""
    with _first_on_the_path(folder, _REFUSING.format(words=shlex.quote(words))):
        yield


@contextmanager
def _first_on_the_path(folder: Path, script: str) -> Iterator[None]:
    programs = folder / "bin"
    programs.mkdir()
    (programs / "adb").write_text(script)
    (programs / "adb").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(programs), prepend=":")
        yield


@contextmanager
def adb_server(folder: Path, serial: str) -> Iterator[Path]:
    """Let the real ``adb`` find one phone while this lasts; give its home."""
    if obstacle := phone_obstacle("adb"):
        pytest.skip(f"boards: {obstacle}")
    environment = phone_environment(folder)
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANDROID_ADB_SERVER_PORT", str(listening.getsockname()[1]))
        patch.setenv("HOME", str(folder))  # for what the client itself writes
        thread = threading.Thread(target=_serve, args=(listening, serial, environment), daemon=True)
        thread.start()
        yield folder / "home"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def _serve(listening: socket.socket, serial: str, environment: Mapping[str, str]) -> None:
    with suppress(OSError):
        while True:
            client, _ = listening.accept()
            threading.Thread(target=_answer, args=(client, serial, environment), daemon=True).start()


#: *Source*: platform/packages/modules/adb, SERVICES.TXT and shell_protocol.h.
_FEATURES, _VERSION = b"shell_v2,cmd", b"0029"
_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN = range(5)


def _answer(client: socket.socket, serial: str, environment: Mapping[str, str]) -> None:
    with client, client.makefile("rb") as asked, suppress(OSError, ValueError):
        while length := asked.read(4):
            request = asked.read(int(length, 16)).decode("utf-8", "surrogateescape")
            if request.startswith("shell,"):
                client.sendall(b"OKAY")
                _run(request.partition(":")[2], client, asked, environment)
                return
            if f":{serial}" not in request and request.split(":")[1] not in ("version", "features", "tport"):
                told = f"device '{request.rpartition(':')[2]}' not found".encode()
                client.sendall(b"FAIL%04x%s" % (len(told), told))
                return
            told = _VERSION if request == "host:version" else _FEATURES if request.endswith("features") else b""
            client.sendall(b"OKAY" + (b"%04x%s" % (len(told), told) if told else b""))
            if told:  # a question, and no way to the phone
                return
            if request.startswith("host:tport:"):
                client.sendall(struct.pack("<Q", 1))


def _run(script: str, client: socket.socket, asked: IO[bytes], environment: Mapping[str, str]) -> None:
    """Run a script as adb's daemon does, and carry what passes through its pipes."""
    shell = str(Path(environment["PATH"]) / "sh")
    pipe = subprocess.PIPE
    process = subprocess.Popen([shell, "-c", script], stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd="/")
    sending = threading.Lock()

    def send(kind: int, content: bytes) -> None:
        with sending, suppress(OSError):
            client.sendall(struct.pack("<BI", kind, len(content)) + content)

    def give_on(kind: int, source: IO[bytes]) -> None:
        while chunk := os.read(source.fileno(), 1 << 16):
            send(kind, chunk)
        source.close()

    assert process.stdout is not None
    assert process.stderr is not None
    pairs = ((_STDOUT, process.stdout), (_STDERR, process.stderr))
    threads = [threading.Thread(target=give_on, args=pair, daemon=True) for pair in pairs]
    threads.append(threading.Thread(target=_feed, args=(process, asked), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads[:2]:
        thread.join()
    send(_EXIT, bytes([process.wait() & 0xFF]))
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
    threads[2].join()


def _feed(process: subprocess.Popen[bytes], asked: IO[bytes]) -> None:
    """Give a program what the client sends for its input, until that ends or the client is gone."""
    assert process.stdin is not None
    with suppress(OSError, ValueError):
        while len(head := asked.read(5)) == 5:
            kind, length = struct.unpack("<BI", head)
            content = asked.read(length)
            if kind == _CLOSE_STDIN:
                break
            if kind == _STDIN:
                process.stdin.write(content)
                process.stdin.flush()
    with suppress(OSError):
        process.stdin.close()
