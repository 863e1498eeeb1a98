"""Under which name a run holds a place, and what such a name tells.

labgrid locks a place for a host and a user. Each run calls itself by a user of its own: two runs of one person on one
host contend like strangers, and whoever finds a place locked reads which run has it. That user is
``USER+perfsuite-TIME-PID.START-HERE-X``. START is when the process started, in ticks since the boot, so that no later
one of its number is taken for it; HERE is a digest of the boot and of the namespace of process numbers, without which
such a number says nothing.

*Source*: labgrid 26.0.1, labgrid-client(1), LG_HOSTNAME and LG_USERNAME.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import secrets
import socket
from dataclasses import dataclass
from datetime import datetime, timezone

from perfsuite.device.process_start import boot_id, is_there, pid_namespace, process_start

_TIME = "%Y%m%dT%H%M%SZ"
_RUN = re.compile(r"(?P<user>.+)\+perfsuite-(?P<time>\d{8}T\d{6}Z)-(?P<pid>\d+)\.(?P<ticks>\d+)-(?P<here>\w+)-\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who has a place."""

    host: str
    #: As labgrid has it; of a run with its time and process id.
    user: str

    @property
    def name(self) -> str:
        """The name that labgrid knows."""
        return f"{self.host}/{self.user}"

    @property
    def pid(self) -> int | None:
        """The process of the run on its host; None where the holder is no run of the suite."""
        match = _RUN.fullmatch(self.user)
        return int(match["pid"]) if match else None

    @property
    def is_alive_here(self) -> bool | None:
        """Whether the run's process is there; None where that cannot be told.

        It cannot for another host, another boot or another container of this one, and for what is no run of the suite.
        """
        match = _RUN.fullmatch(self.user)
        if match is None or self.host != _host() or match["here"] != _here():
            return None
        return is_there(int(match["pid"]), int(match["ticks"]))

    @property
    def text(self) -> str:
        """Who it is, which run, and since when."""
        match = _RUN.fullmatch(self.user)
        if match is None:
            return f"{self.user} on {self.host}"
        since = datetime.strptime(match["time"], _TIME)
        told = f"run of process {match['pid']}, since {since:%Y-%m-%d %H:%M:%S} UTC"
        return f"{match['user']} on {self.host} ({told})"


def new_holder() -> Holder:
    """Return a name for this process that no other run has."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    began = datetime.now(timezone.utc)
    started = process_start(os.getpid())
    process = f"{os.getpid()}.{started.ticks if started else 0}-{_here()}"
    told = f"{user.replace('/', '_')}+perfsuite-{began.strftime(_TIME)}-{process}-{secrets.token_hex(3)}"
    return Holder(host=_host(), user=told)


def holder_named(name: str) -> Holder:
    """Return the holder of a name as labgrid has it."""
    host, _, user = name.partition("/")
    return Holder(host=host, user=user)


def _host() -> str:
    return socket.gethostname().replace("/", "_")


def _here() -> str:
    """Return what names this boot and this namespace of process numbers."""
    return hashlib.sha256(f"{boot_id()} {pid_namespace()}".encode()).hexdigest()[:8]
