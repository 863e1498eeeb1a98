"""The one place that knows every way to a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from perfsuite.device.reach import WAYS, Reach
from perfsuite.device.target.adb import AdbLink
from perfsuite.device.target.protocol import Link, last_line
from perfsuite.device.target.shell import refuse_long
from perfsuite.device.target.shell_target import Target
from perfsuite.device.target.ssh import SshLink
from perfsuite.errors import DeviceError


class LocalLink:
    """The shell of this machine."""

    text = "local"

    def command_line(self, script: str) -> Sequence[str | bytes]:
        """Return the shell with the script as its argument."""
        told = script.encode("utf-8", "surrogateescape")
        refuse_long(told)
        return ("sh", "-c", told)

    def complaint(self, errors: str) -> str:
        """There is no link to lose: the shell itself was ended."""
        told = f" ({last_line(errors)})" if errors.strip() else ""
        return f"the shell was ended from outside{told}; run it again"

    def close(self) -> None:
        """Nothing is shared."""


#: By way, in the order of `WAYS`.
_LINKS: Mapping[str, Callable[[Reach], Link]] = {"local": lambda _: LocalLink(), "ssh": SshLink, "adb": AdbLink}


def open_target(reach: Reach) -> Target:
    """Return the way to a device; nothing is asked of it yet.

    Raises DeviceError: where there is no such way, or no such address; LinkError: where there is no folder here for
    what ssh shares.
    """
    if reach.way not in _LINKS:
        raise DeviceError(f"{reach.way!r}: no way to a device; [reach] of its profile takes: {', '.join(WAYS)}")
    return Target(_LINKS[reach.way](reach))
