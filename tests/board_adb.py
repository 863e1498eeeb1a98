"""A fake ``adb``: it joins its arguments by blanks, as adb does, and gives them to a shell with a home of its own."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_FAKE = """\
#!/bin/sh
[ "$1" != -s ] || shift 2
[ "$1 $2" = "shell -T" ] || exit 9
shift 2
HOME={home} exec sh -c "$*"
"""

_REFUSING = """\
#!/bin/sh
echo {words} >&2
exit 1
"""


@contextmanager
def fake_adb(folder: Path) -> Iterator[Path]:
    """Let ``adb`` lead to a shell here while this lasts; give its home."""
    home = folder / "home"
    home.mkdir()
    with _first_on_the_path(folder, _FAKE.format(home=shlex.quote(str(home)))):
        yield home


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
