"""The one place that knows every way to a device."""

from __future__ import annotations

from perfsuite.device.reach import WAYS, Reach
from perfsuite.device.target.adb import AdbLink
from perfsuite.device.target.local import LocalLink
from perfsuite.device.target.protocol import Target
from perfsuite.device.target.shell_target import ShellTarget
from perfsuite.device.target.ssh import SshLink
from perfsuite.errors import DeviceError


def open_target(reach: Reach) -> Target:
    """Return the way to a device; nothing is asked of it yet.

    Raises DeviceError: where there is no such way, or no such address; LinkError: where there is no folder here for
    what ssh shares.
    """
    if reach.way == "ssh":
        return ShellTarget(SshLink(reach))
    if reach.way == "adb":
        return ShellTarget(AdbLink(reach))
    if reach.way == "local":
        return ShellTarget(LocalLink())
    raise DeviceError(f"{reach.way!r}: no way to a device; [reach] of its profile takes: {', '.join(WAYS)}")
