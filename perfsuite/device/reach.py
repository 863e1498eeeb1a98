"""How a device is reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

#: The ways, by the name that a profile gives them.
Way: TypeAlias = Literal["local", "ssh", "adb", "serial"]
WAYS: tuple[str, ...] = get_args(Way)

#: What names a way with its address, in words for messages.
TAKEN = "local, ssh:[user@]host[:port], user@host[:port], adb[:SERIAL], serial:[user@]/dev/PORT[,BAUD]"

#: By way: the folder on a device where nobody names another. The user of adb's shell may write and run in this one.
HOMES = dict.fromkeys(WAYS, "~/.local/share/perfsuite") | {"adb": "/data/local/tmp/perfsuite"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The way to a device: ``[reach]`` of its profile."""

    #: One of `WAYS`.
    way: str = "local"
    #: ``ssh``: a host or ``user@host``, or a name of ``~/.ssh/config``; ``adb``: a serial number, "" for the only one;
    #: ``serial``: a port such as ``/dev/ttyUSB0``, with ``user@`` before it where the console asks who logs in.
    address: str = ""
    #: ``ssh``: None leaves it to OpenSSH's own configuration.
    port: int | None = None
    #: ``serial``: the rate of the console.
    baud: int = 115200
    #: ``ssh``: files of one's own instead of those of OpenSSH's configuration; None leaves it to that.
    identity_file: str | None = None
    known_hosts_file: str | None = None
    #: The folder on the device in which ``perfsuite devices setup`` installs; ``~`` is the home there.
    home: str = "~/.local/share/perfsuite"

    @property
    def text(self) -> str:
        """The way in words for messages: ``ssh root@board:2222``."""
        if self.port is None:
            return " ".join(filter(None, (self.way, self.address)))
        user, at, host = self.address.rpartition("@")
        return f"{self.way} {user}{at}{f'[{host}]' if ':' in host else host}:{self.port}"
