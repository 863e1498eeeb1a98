"""What ``adb`` says when a link fails, and what a user can do about it."""

from __future__ import annotations

import re

from perfsuite.device.target.words import LOST_IN_THE_MIDDLE, last_line

#: Source: platform/packages/modules/adb, transport.cpp, adb_client.cpp and client/commandline.cpp, as they print them.
_KNOWN = (
    (r"no devices/emulators found|no devices found", "adb sees no device; plug it in and allow USB debugging on it"),
    (r"more than one (device|emulator)", "adb sees several devices; name one as address in [reach] (`adb devices`)"),
    (r"device unauthorized|device still authorizing", "the device has not allowed this machine; confirm on its screen"),
    (r"device offline", "the device is offline to adb; plug it in again, or `adb reconnect`"),
    (r"device '.*' not found", "adb sees no such device; `adb devices` lists what it sees"),
    (r"target doesn't support PTY args", "the device's shell is too old to be measured by; Android 7 is needed"),
    (r"no permissions", "this user may not use the USB device; add the udev rule, then `adb kill-server`"),
    (
        r"cannot connect to daemon|failed to start daemon",
        "adb's own server does not start; `adb start-server` says why",
    ),
)


def explained(errors: str) -> str:
    """Return one line: what happened, and what to do; adb's own words where they are none of those known."""
    for pattern, advice in _KNOWN:
        if found := re.search(rf"^(adb: |error: |\* ).*({pattern}).*", errors, re.MULTILINE):
            return f"{advice} ({found[0].strip()})"
    told = f"; the last words: {last_line(errors)}" if errors.strip() else ""
    return f"{LOST_IN_THE_MIDDLE}{told}"
