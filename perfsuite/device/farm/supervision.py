"""The run's end of the supervisor: starts it, and asks it to give the board back."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress

from perfsuite.device.end_requests import signals_held_off
from perfsuite.device.farm.client import CALL_LIMIT_S, Client, Place, RefusedError, places, reservations
from perfsuite.errors import LinkError, LockedError, PerfsuiteError, meant

#: A lock that was just being taken shows at a second look.
_LOOKS = 3


def give_back(client: Client) -> tuple[str, ...]:
    """Cancel the reservations and unlock the places of the client's name; return the places.

    Looked up by name, so that nothing is overlooked that a run had asked for when it died. The reservation goes first:
    labgrid then gives the place to the next one at once.

    Raises LockedError: a place stayed locked all the same; PerfsuiteError: as `Client.call`.
    """
    given: dict[str, None] = {}
    for look in range(_LOOKS + 1):
        tokens = [each.token for each in reservations(client) if each.owner == client.holder]
        held = [each.name for each in places(client) if each.holder == client.holder]
        if not tokens and not held:
            break
        if look == _LOOKS:
            if not held:
                mend = f"end it with 'labgrid-client cancel-reservation {tokens[0]}'"
                raise LockedError(f"the reservation {tokens[0]} stays; {mend}")
            mend = f"free it with 'labgrid-client -p {held[0]} release --kick'"
            raise LockedError(f"{held[0]} stays locked by {client.holder.text}; is its exporter still there? {mend}")
        for token in tokens:
            _cancel(client, token)
        for name in held:
            _release(client, name, client.holder.name)
        given.update(dict.fromkeys(held))
    return tuple(given)


def break_lock(client: Client, name: str) -> str:
    """Unlock a place, whoever has it, and cancel its reservation; return in words whose it was.

    Raises LockedError: a run that is alive on this machine has it; PerfsuiteError: there is no such place.
    """
    place = _found(client, name)
    if place.holder is None:
        return f"{name} is not locked; nothing is broken"
    if place.holder.is_alive_here:
        raise LockedError(
            f"{name} is locked by {place.holder.text}, which is alive on this machine; end it with 'kill "
            f"{place.holder.pid}', or break its lock with 'labgrid-client -p {name} release --kick'"
        )
    if place.token is not None:
        _cancel(client, place.token)
    _release(client, name, place.holder.name)
    return f"broke the lock of {place.holder.text} on {name}"


def _found(client: Client, name: str) -> Place:
    found = places(client)
    for place in found:
        if place.name == name:
            return place
    names = [place.name for place in found]
    told = f"it has {', '.join(names) or 'none'}{meant(name, names)}"
    raise PerfsuiteError(f"--farm-break={name}: the farm has no such place; {told}")


def _cancel(client: Client, token: str) -> None:
    with suppress(RefusedError):  # it has expired meanwhile
        client.call("cancel-reservation", token)


def _release(client: Client, name: str, holder_name: str) -> None:
    """Unlock a place if it is still of that holder, which the coordinator checks in the same step."""
    with suppress(RefusedError):  # it is free already
        client.call("-p", name, "release-from", holder_name)


#: It makes up to a dozen calls of a quarter of a second, and each may take its limit where the coordinator is away.
_ANSWER_LIMIT_S = 2 * CALL_LIMIT_S


class Supervision:
    """A supervisor that is running."""

    def __init__(self, client: Client) -> None:
        self._client = client
        command = [sys.executable, "-I", "-m", "perfsuite.device.farm.supervisor", str(os.getpid())]
        command += [client.request.coordinator or "", client.holder.host, client.holder.user]
        with signals_held_off():  # what is started inherits that: none comes before it has begun
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )

    @property
    def pid(self) -> int:
        """The supervisor's process."""
        return self._process.pid

    def give_back(self) -> tuple[str, ...]:
        """Give back what the run holds, and return the places; a supervisor that has died or hangs is done without.

        Raises LinkError: the coordinator cannot be reached; the supervisor goes on trying for ten minutes.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        ready, _, _ = select.select([self._process.stdout], [], [], _ANSWER_LIMIT_S)
        if not (answer := self._process.stdout.readline() if ready else b""):  # it ended without, or takes too long
            self._process.stdout.close()
            return self._given_back_here()
        return self._told(json.loads(answer))

    def _given_back_here(self) -> tuple[str, ...]:
        """Give back without the supervisor; should that fail, one that only hangs may yet go on."""
        try:
            given = give_back(self._client)
        except PerfsuiteError:
            self._process.returncode = self._process.poll() or 0  # Popen would warn of one that goes on
            raise
        self._process.kill()
        self._process.wait()
        return given

    def _told(self, answer: dict[str, object]) -> tuple[str, ...]:
        assert self._process.stdout is not None
        self._process.stdout.close()
        if "error" in answer:
            self._process.returncode = 0  # it goes on by itself; Popen would warn of that
            raise LinkError(f"{answer['error']}; its supervisor goes on trying to give the board back for 10 min")
        self._process.wait(CALL_LIMIT_S)
        given = answer["given_back"]
        return tuple(map(str, given)) if isinstance(given, list) else ()
