"""Calls of labgrid's own client, a program of its own for each, with a limit of time, and what they print.

A program, and not its library: gRPC's threads and labgrid's event loop stay out of a process that measures and starts
workers, a call that hangs can be ended, and the command line is the interface that labgrid documents.

labgrid locks a place for a host and a user. Each run calls itself by a user of its own, so that two runs of one person
on one host contend like strangers: ``USER+perfsuite-TIME-PID.START-HERE-X``. START is when the process started, in
ticks since the boot, so that no later one of its number is taken for it; HERE is a digest of the boot and of the
namespace of process numbers, without which such a number says nothing.

*Source*: labgrid 26.0.1, labgrid-client(1), LG_HOSTNAME and LG_USERNAME; ``labgrid-client -v places`` and
``reservations``: a heading such as ``Place 'board1':``, then ``name: value`` with two spaces before it, and what
belongs below it with four.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from perfsuite.device.farm.request import FarmRequest
from perfsuite.device.process_start import boot_id, is_there, pid_namespace, process_start
from perfsuite.errors import LinkError, PerfsuiteError

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
        return f"{self.host}/{self.user}"

    @property
    def _run(self) -> re.Match[str] | None:
        return _RUN.fullmatch(self.user)

    @property
    def pid(self) -> int | None:
        """The process of the run on its host; None where the holder is no run of the suite."""
        return int(self._run["pid"]) if self._run else None

    @property
    def is_alive_here(self) -> bool | None:
        """Whether the run's process is there; None where that cannot be known.

        It cannot for another host, another boot or another container of this one, and for what is no run of the suite.
        """
        run = self._run
        if run is None or self.host != _host() or run["here"] != _here():
            return None
        return is_there(int(run["pid"]), int(run["ticks"]))

    @property
    def text(self) -> str:
        """Who it is, which run, and since when."""
        run = self._run
        if run is None:
            return f"{self.user} on {self.host}"
        since = datetime.strptime(run["time"], _TIME)
        return f"{run['user']} on {self.host} (run of process {run['pid']}, since {since:%Y-%m-%d %H:%M:%S} UTC)"


def new_holder() -> Holder:
    """Return a name for this process that no other run has."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    began, started = datetime.now(timezone.utc).strftime(_TIME), process_start(os.getpid())
    process = f"{os.getpid()}.{started.ticks if started else 0}-{_here()}"
    text = f"{user.replace('/', '_')}+perfsuite-{began}-{process}-{secrets.token_hex(3)}"
    return Holder(host=_host(), user=text)


def holder_named(name: str) -> Holder:
    """Return the holder of a name as labgrid has it."""
    host, _, user = name.partition("/")
    return Holder(host=host, user=user)


def _host() -> str:
    return socket.gethostname().replace("/", "_")


def _here() -> str:
    """Return what names this boot and this namespace of process numbers."""
    return hashlib.sha256(f"{boot_id()} {pid_namespace()}".encode()).hexdigest()[:8]


#: A call takes a quarter of a second; the coordinator itself gives an exporter 10 s for an answer.
CALL_LIMIT_S = 30.0

#: Variables with which a user's shell may steer the client.
_STEERING = ("LG_PLACE", "PLACE", "LG_ENV", "LG_STATE", "STATE", "LG_INITIAL_STATE", "LG_TOKEN")

#: How the client, or gRPC below it, says that nobody answers there.
_AWAY = re.compile(
    "coordinator (is|became) unavailable|failed to connect|connection (refused|reset)|socket closed"
    r"|StatusCode\.UNAVAILABLE",
    re.IGNORECASE,
)

#: What the client puts before the reason of a failure.
_PREFIXES = ("Server error: ", "client.py: ", "Error: ", "error: ")


class RefusedError(PerfsuiteError):
    """The coordinator was reached, and refused; the text is its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Calls labgrid's client in the name of a run."""

    request: FarmRequest
    holder: Holder

    def call(self, *words: str, limit_s: float = CALL_LIMIT_S) -> str:
        """Return what the client prints.

        Raises LinkError: the coordinator cannot be reached, or gave no answer within the limit; RefusedError: it
        refused.
        """
        printed = self.call_or_none(*words, limit_s=limit_s)
        if printed is None:
            raise LinkError(f"labgrid's coordinator at {self.request.text}: no answer to {words[0]!r} in {limit_s:g} s")
        return printed

    def call_or_none(self, *words: str, limit_s: float) -> str | None:
        """Return what the client prints, or None where it was still at it when the limit had passed; raises alike."""
        # env sets the variables, so that all others stay as they are
        unset = [part for name in _STEERING for part in ("-u", name)]
        named = (f"LG_HOSTNAME={self.holder.host}", f"LG_USERNAME={self.holder.user}", "GRPC_ENABLE_FORK_SUPPORT=0")
        client = ("env", *unset, *named, sys.executable, "-I", "-m", "labgrid.remote.client")
        where = ("--coordinator", self.request.coordinator) if self.request.coordinator else ()
        try:
            done = subprocess.run(
                [*client, *where, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        except OSError as error:
            raise PerfsuiteError(f"labgrid's client cannot be started ({error.strerror})") from error
        if not done.returncode:
            return done.stdout
        if _AWAY.search(done.stderr):
            raise LinkError(
                f"labgrid's coordinator at {self.request.text} cannot be reached; start it there, "
                "or name another with --farm=HOST:PORT"
            )
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = lines[-1] if lines else "no reason given"
        for prefix in _PREFIXES:
            reason = reason.removeprefix(prefix)
        raise RefusedError(f"labgrid: {reason}")


_FIELD = re.compile(r"  (\w[\w ]*):(?: (.*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A board of the farm."""

    name: str
    tags: Mapping[str, str] = field(default_factory=dict)
    #: Who has it; None where it is free.
    holder: Holder | None = None
    #: The token of the reservation that it was given to.
    token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A board that was asked for."""

    token: str
    owner: Holder
    #: ``waiting``, ``allocated``, ``acquired``, ``expired`` or ``invalid``.
    state: str


def places(client: Client) -> tuple[Place, ...]:
    """Return the places of the farm; raises as `Client.call`."""
    found = []
    for name, fields in _blocks(client.call("-v", "places"), "Place"):
        acquired = fields.get("acquired", "None")
        tags = (pair.partition("=") for pair in fields.get("tags", "").split(", ") if pair)
        place = Place(
            name=name,
            tags={key: value for key, _, value in tags},
            holder=None if acquired in ("", "None") else holder_named(acquired),
            token=fields.get("reservation") or None,
        )
        found.append(place)
    return tuple(found)


def parsed_reservations(printed: str) -> tuple[Reservation, ...]:
    """Return the reservations that a call printed."""
    return tuple(
        Reservation(token=token, owner=holder_named(fields.get("owner", "")), state=fields.get("state", ""))
        for token, fields in _blocks(printed, "Reservation")
    )


def _blocks(printed: str, kind: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the name of each block with its fields; what lies deeper is left out."""
    name, fields = None, dict[str, str]()
    for line in (*printed.splitlines(), f"{kind} '':"):
        if line.startswith(f"{kind} '") and line.endswith("':"):
            if name is not None:
                yield name, fields
            name, fields = line[len(kind) + 2 : -2], {}
        elif match := _FIELD.fullmatch(line):
            fields.setdefault(match[1], match[2] or "")
