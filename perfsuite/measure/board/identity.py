"""Which of several boards of a kind this is."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from perfsuite.errors import DeviceError

#: Where a board keeps a number of its own. *Source*: Devicetree Specification 0.4, ``serial-number``.
_SERIAL_NUMBER = "proc/device-tree/serial-number"

#: The same of Android. adb's shell may read them; an app as Termux may not, and gets nothing.
#: *Source*: Android's reference, ``Build.getSerial``, "Starting with API level 29"; SELinux's type ``serialno_prop``.
_PROPERTIES = ("ro.serialno", "ro.boot.serialno")
_PROPERTY_LIMIT_S = 10.0

#: Where a system keeps one, which boards that were written from one image have in common. *Source*: machine-id(5).
_MACHINE_IDS = ("etc/machine-id", "var/lib/dbus/machine-id")

#: What stands in the place of a number where there is none.
_UNKNOWN = ("unknown", "uninitialized")
_FILLER = "0123456789abcdef"

#: Within the suite's folder: a number that was made there.
_KEPT = "board-number"

#: So that the hash is not one that others make of the same number (machine-id(5) asks for that).
_SALT = "perfsuite board\n"


def board_identity(root: Path = Path("/"), home: Path | None = None) -> str:
    """Return sixteen digits that stay with this machine.

    A board without a number of its own, as a phone is to an app, has a random one that is kept in the suite's folder.

    `home` is that folder; None is the user's.

    Raises `DeviceError` where it has no number, none can be kept, and its host name is everybody's.
    """
    home = home or _suite_home()
    return told_identity(
        root,
        properties=_properties(),
        kept=lambda: _kept_number(home),
        hostname=socket.gethostname(),
        where=str(home),
    )


def told_identity(
    root: Path, *, properties: Iterable[str], kept: Callable[[], str | None], hostname: str, where: str
) -> str:
    """Return the digits of the machine whose files lie below a root, with what its properties say.

    `kept` returns the number that was made there once, `where` is the folder that keeps it. Raises as `board_identity`.
    """
    found = chain([_text(root / _SERIAL_NUMBER)], properties, (_text(root / each) for each in _MACHINE_IDS))
    told = next(filter(_is_number, found), None) or _kept_or_name(kept(), hostname, where)
    return hashlib.sha256(f"{_SALT}{told}".encode()).hexdigest()[:16]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip("\0\n ")
    except OSError:
        return ""


def _properties() -> Iterator[str]:
    program = shutil.which("getprop")
    for name in _PROPERTIES if program else ():
        with suppress(OSError, subprocess.TimeoutExpired):
            asked = [str(program), name]
            told = subprocess.run(
                asked, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROPERTY_LIMIT_S, check=False
            )
            yield told.stdout.decode("utf-8", "replace").strip()


def _is_number(text: str) -> bool:
    plain = text.lower()
    return not (_FILLER.startswith(plain) or set(plain) <= {"0"} or plain in _UNKNOWN)


def _suite_home() -> Path:
    import platformdirs  # few boards have no number

    return Path(platformdirs.user_data_dir("perfsuite"))


def _kept_or_name(number: str | None, name: str, where: str) -> str:
    if number:
        return f"kept {number}"
    if name.partition(".")[0] in ("", "localhost"):
        raise DeviceError(
            f"{where}: keeps no number for this board, which has none of its own and calls itself {name!r}, as others "
            "do; make the folder writable"
        )
    return f"host {name}"


def _kept_number(home: Path) -> str | None:
    """Return the number that was made here once; it is made where there is none, None where it cannot be kept.

    It is the text of a link that leads nowhere: that comes to be whole, and once only, also where two begin together.
    """
    link = home / _KEPT
    with suppress(OSError):
        if not link.is_symlink():
            home.mkdir(parents=True, exist_ok=True)
            link.symlink_to(secrets.token_hex(16))
    with suppress(OSError):
        return os.readlink(link)
    return None
