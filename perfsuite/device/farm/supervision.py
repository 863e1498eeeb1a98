"""Gives boards back: the run at its end, and a program that follows it for a run that was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress

from perfsuite.device.end_requests import signals_held_off
from perfsuite.device.farm.client import Client, Holder, RefusedError, parsed_reservations, places
from perfsuite.device.farm.request import FarmRequest
from perfsuite.errors import LockedError, PerfsuiteError, meant

#: A lock that was just being taken shows at a second look.
_LOOKS = 3

#: How often the supervisor looks whether its run is there, and how it tries again where the coordinator is away.
_LOOK_PERIOD_S, _RETRY_PERIOD_S, _RETRY_LIMIT_S = 0.5, 5.0, 600.0


def give_back(client: Client) -> tuple[str, ...]:
    """Cancel the reservations and unlock the places of the client's name; return the places.

    Looked up by name, so that nothing is overlooked that a run had asked for when it died. The reservation goes first:
    labgrid then gives the place to the next one at once.

    Raises LockedError: a place stayed locked all the same; PerfsuiteError: as `Client.call`.
    """
    given: dict[str, None] = {}
    for look in range(_LOOKS + 1):
        reserved = parsed_reservations(client.call("reservations"))
        tokens = [each.token for each in reserved if each.owner == client.holder]
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
    found = {place.name: place for place in places(client)}
    if name not in found:
        text = f"it has {', '.join(found) or 'none'}{meant(name, found)}"
        raise PerfsuiteError(f"--farm-break={name}: the farm has no such place; {text}")
    place = found[name]
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


def _cancel(client: Client, token: str) -> None:
    with suppress(RefusedError):  # it has expired meanwhile
        client.call("cancel-reservation", token)


def _release(client: Client, name: str, holder_name: str) -> None:
    """Unlock a place if it is still of that holder, which the coordinator checks in the same step."""
    with suppress(RefusedError):  # it is free already
        client.call("-p", name, "release-from", holder_name)


class Supervision:
    """A program that gives back what the run holds should the run die, from before it holds anything.

    It is in a session of its own, so that Ctrl-C at the terminal does not reach it. Nor does it take a request to
    terminate: a job whose processes are all asked to would end it with its run, and leave the board locked.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        command = [sys.executable, "-I", "-m", __name__, str(os.getpid())]
        command += [client.request.coordinator or "", client.holder.host, client.holder.user]
        with signals_held_off():  # what is started inherits that, and keeps it
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def give_back(self) -> tuple[str, ...]:
        """Give back what the run holds, and return the places.

        Raises PerfsuiteError: as `give_back`; once the run has ended the supervisor tries for ten minutes.
        """
        try:
            given = give_back(self._client)
        except PerfsuiteError:
            self._process.returncode = self._process.poll() or 0  # Popen would warn of one that goes on
            raise
        self._process.kill()
        self._process.wait()
        return given


def main(arguments: list[str]) -> int:
    """Wait for the end of the run, then give back: the arguments are its process, coordinator, host and user."""
    pid, coordinator, host, user = arguments
    while os.getppid() == int(pid):
        time.sleep(_LOOK_PERIOD_S)
    client = Client(request=FarmRequest(coordinator=coordinator or None), holder=Holder(host=host, user=user))
    deadline_s = time.monotonic() + _RETRY_LIMIT_S
    while time.monotonic() < deadline_s:
        with suppress(PerfsuiteError):
            give_back(client)
            return 0
        time.sleep(_RETRY_PERIOD_S)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
