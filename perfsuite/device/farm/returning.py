"""Gives back what a run holds, and breaks the lock of a run that is dead."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from perfsuite.device.farm.client import Client, RefusedError
from perfsuite.device.farm.listings import Place, places, reservations
from perfsuite.errors import LockedError, PerfsuiteError

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
            raise LockedError(_still_held(client, held, tokens))
        for token in tokens:
            _cancel(client, token)
        for name in held:
            _release(client, name, client.holder.name)
        given.update(dict.fromkeys(held))
    return tuple(given)


def _still_held(client: Client, held: Sequence[str], tokens: Sequence[str]) -> str:
    if not held:
        return f"the reservation {tokens[0]} stays; end it with 'labgrid-client cancel-reservation {tokens[0]}'"
    return (
        f"{held[0]} stays locked by {client.holder.text}; is its exporter still there? "
        f"free it with 'labgrid-client -p {held[0]} release --kick'"
    )


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
    names = ", ".join(place.name for place in found) or "none"
    raise PerfsuiteError(f"--farm-break={name}: the farm has no such place; it has {names}")


def _cancel(client: Client, token: str) -> None:
    with suppress(RefusedError):  # it has expired meanwhile
        client.call("cancel-reservation", token)


def _release(client: Client, name: str, holder_name: str) -> None:
    """Unlock a place if it is still of that holder, which the coordinator checks in the same step."""
    with suppress(RefusedError):  # it is free already
        client.call("-p", name, "release-from", holder_name)
