"""The one place that knows every way to a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from perfsuite.device.reach import WAYS, Reach
from perfsuite.device.target.adb import AdbLink
from perfsuite.device.target.local import LocalLink
from perfsuite.device.target.protocol import Link
from perfsuite.device.target.serial import SerialLink
from perfsuite.device.target.shell_target import Target
from perfsuite.device.target.ssh import SshLink
from perfsuite.errors import DeviceError

#: By way, in the order of `WAYS`.
_LINKS: Mapping[str, Callable[[Reach], Link]] = {
    "local": LocalLink,
    "ssh": SshLink,
    "adb": AdbLink,
    "serial": SerialLink,
}


def open_target(reach: Reach) -> Target:
    """Return the way to a device; nothing is asked of it yet.

    Raises DeviceError: where there is no such way, or no such address; LinkError: where there is no folder here for
    what ssh shares.
    """
    if reach.way not in _LINKS:
        raise DeviceError(f"{reach.way!r}: no way to a device; [reach] of its profile takes: {', '.join(WAYS)}")
    return Target(_LINKS[reach.way](reach))
