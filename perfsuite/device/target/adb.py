"""A device over Android's ``adb``.

It needs Android 7 or newer, whose shell tells errors from output and its exit status. A shell of adb is the user
``shell``, who may write and run what is in ``/data/local/tmp``, and cannot enter Termux's own folders. A phone without
a cable is reached over Termux's sshd instead: ``pkg install openssh; sshd``, and a ``[reach]`` by ``ssh`` at port 8022.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence

from perfsuite.device.reach import Reach
from perfsuite.device.target.protocol import explanation
from perfsuite.device.target.shell import one_line
from perfsuite.errors import DeviceError, LinkError

#: By what adb prints.
#: *Source*: platform/packages/modules/adb, transport.cpp, adb_client.cpp and client/commandline.cpp.
_KNOWN = (
    ("no devices/emulators found|no devices found", "adb sees no device; plug it in and allow USB debugging on it"),
    ("more than one (device|emulator)", "adb sees several devices; name one as adb:SERIAL"),
    ("device unauthorized|device still authorizing", "the device has not allowed this machine; confirm on its screen"),
    ("device offline", "the device is offline to adb; plug it in again, or `adb reconnect`"),
    ("device '.*' not found", "adb sees no such device"),
    ("target doesn't support PTY args", "the device's shell is too old to be measured by; Android 7 is needed"),
    ("no permissions", "this user may not use the USB device; add the udev rule, then `adb kill-server`"),
    ("cannot connect to daemon|failed to start daemon", "adb's server does not start; `adb start-server` says why"),
)


class AdbLink:
    """A shell behind ``adb``."""

    def __init__(self, reach: Reach) -> None:
        address = reach.address
        if address.startswith("-") or not address.isprintable() or any(map(str.isspace, address)):
            raise DeviceError(f"{address!r}: no serial number of adb; `adb devices` lists them")
        self._reach = reach

    @property
    def text(self) -> str:
        """``adb 0123456789``."""
        return self._reach.text

    def command_line(self, script: str) -> Sequence[str | bytes]:
        """Return adb's command line; it joins its arguments with blanks, so the script is a single one."""
        if shutil.which("adb") is None:
            raise LinkError(f"{self.text}: adb is not installed here; Debian has it as adb")
        serial = ("-s", self._reach.address) if self._reach.address else ()
        return ("adb", *serial, "shell", "-T", one_line(script))

    def complaint(self, errors: str) -> str:
        """Explain adb's words."""
        known = ((rf"^(adb: |error: |\* ).*({row[0]}).*", f"{row[1]} ({{said}})") for row in _KNOWN)
        told = explanation(errors, known)
        return f"{told}; {_seen()}" if re.search(r"more than one|not found", errors) else told

    def seconds_for(self, size_bytes: int) -> float:
        """No time that is worth a word."""
        return 0.0

    def close(self) -> None:
        """Leave adb's server: it is the user's, and others may use it."""


#: What adb says of a device that cannot be used, and what to do. *Source*: as above, adb.h, enum ConnectionState.
_STATES = {
    "unauthorized": "confirm on its screen",
    "offline": "plug it in again, or `adb reconnect`",
    "no permissions": "add the udev rule, then `adb kill-server`",
}

#: A line of ``adb devices``; a serial number has no blank.
_DEVICE = re.compile(r"(\S+)\t(.+)")


def _seen() -> str:
    """Return every device that adb sees, and why one cannot be used."""
    try:
        answer = subprocess.run(
            ["adb", "devices"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10.0, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return "`adb devices` lists them"
    found = [match for line in answer.stdout.splitlines() if (match := _DEVICE.fullmatch(line.strip()))]
    return f"it sees {'; '.join(map(_device_text, found)) or 'none'}"


def _device_text(found: re.Match[str]) -> str:
    mend = next((mend for state, mend in _STATES.items() if found[2].startswith(state)), None)
    return f"adb:{found[1]}" if found[2] == "device" else f"adb:{found[1]}, {found[2]}{f': {mend}' if mend else ''}"
