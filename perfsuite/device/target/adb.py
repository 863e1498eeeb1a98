"""A device over Android's ``adb``.

It needs Android 7 or newer, whose shell tells errors from output and its exit status. A shell of adb is the user
``shell``, who may write and run what is in ``/data/local/tmp``, and cannot enter Termux's own folders. For what needs
Termux's Python, a phone is reached over its sshd instead: ``pkg install openssh; sshd``, ``adb forward tcp:8022
tcp:8022``, and a ``[reach]`` by ``ssh`` at ``localhost`` with port 8022.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from perfsuite.device.reach import Reach
from perfsuite.device.target.protocol import explanation
from perfsuite.device.target.shell import one_line
from perfsuite.errors import DeviceError, LinkError

#: By what adb prints.
#: *Source*: platform/packages/modules/adb, transport.cpp, adb_client.cpp and client/commandline.cpp.
_KNOWN = (
    ("no devices/emulators found|no devices found", "adb sees no device; plug it in and allow USB debugging on it"),
    ("more than one (device|emulator)", "adb sees several devices; name one as address in [reach] (`adb devices`)"),
    ("device unauthorized|device still authorizing", "the device has not allowed this machine; confirm on its screen"),
    ("device offline", "the device is offline to adb; plug it in again, or `adb reconnect`"),
    ("device '.*' not found", "adb sees no such device; `adb devices` lists what it sees"),
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
        return explanation(errors, ((rf"^(adb: |error: |\* ).*({row[0]}).*", f"{row[1]} ({{said}})") for row in _KNOWN))

    def seconds_for(self, size_bytes: int) -> float:
        """No time that is worth a word."""
        return 0.0

    def close(self) -> None:
        """Leave adb's server: it is the user's, and others may use it."""
