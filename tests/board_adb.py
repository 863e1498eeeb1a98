"""A stand-in of a phone behind adb: Android's shell and its tools, and nothing of Debian's.

`fake_adb` has a program ``adb`` of its own, which joins its arguments by blanks as adb does, and runs commands in mksh
with a PATH of toybox's tools.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


def phone_obstacle() -> str | None:
    missing = [name for name in ("mksh", "toybox", "busybox") if shutil.which(name) is None]
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
