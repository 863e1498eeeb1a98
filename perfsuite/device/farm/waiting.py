"""Reserves a board by its tag, and waits for it while telling who has the boards."""

from __future__ import annotations

import time
from collections.abc import Callable

from perfsuite.device.farm.client import Client
from perfsuite.device.farm.listings import Place, parsed_reservations, places
from perfsuite.errors import LockedError, PerfsuiteError

#: The tag by which boards are chosen.
TAG = "board"

#: Time between two looks at who has the boards.
_LOOK_PERIOD_S = 15.0

Tell = Callable[[str], None]


def reserve(client: Client, kind: str, tell: Tell, *, deadline_s: float) -> str:
    """Reserve a board of a kind, wait until one is free, and return the token of the reservation.

    Raises LockedError: none was free within the limit, and who has them; PerfsuiteError: the reservation
    was cancelled by somebody else; LinkError: the coordinator cannot be reached.
    """
    wanted = f"{TAG}={kind}"
    (reservation,) = parsed_reservations(client.call("reserve", wanted)) or (None,)
    if reservation is None:
        raise PerfsuiteError(f"labgrid: 'reserve {wanted}' printed no reservation; is its version 26 or later?")
    state = reservation.state
    told = ""
    while state == "waiting":
        now = "; ".join(_holder_text(place) for place in places(client) if place.tags.get(TAG) == kind)
        if now != told:
            told = now
            tell(f"waiting for a board with {wanted}: {told}")
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise LockedError(
                f"no board with {wanted} was free within {client.request.wait_limit_s:g} s: {told}; wait longer with "
                "--farm-wait=2h, or break the lock of a run that is dead with --farm-break=PLACE"
            )
        state = _waited(client, reservation.token, min(left_s, _LOOK_PERIOD_S))
    if state not in ("allocated", "acquired"):
        raise PerfsuiteError(f"labgrid: the reservation of {wanted} is {state}; somebody cancelled it, run again")
    return reservation.token


def _holder_text(place: Place) -> str:
    """Say who has a board, and how a lock that nobody needs any more is broken."""
    if place.holder is None:
        return f"{place.name} is {'reserved, not yet locked' if place.token else 'free'}"
    text = f"{place.name} is locked by {place.holder.text}"
    if place.holder.is_alive_here is False:
        return f"{text}, and no such process is here any more; --farm-break={place.name} breaks the lock"
    return text


def _waited(client: Client, token: str, limit_s: float) -> str:
    """Wait a while, which also keeps the reservation from expiring; return its state."""
    printed = client.call_or_none("wait", token, limit_s=max(limit_s, 2.0))
    if printed is None:
        return "waiting"
    states = [line.partition(":")[2].strip() for line in printed.splitlines() if line.startswith("state:")]
    return states[-1] if states else "unknown"


def refuse_unknown_kind(client: Client, kind: str) -> None:
    """Refuse a kind of which the farm has no board at all.

    Raises PerfsuiteError: no place has the tag; LinkError: the coordinator cannot be reached.
    """
    found = places(client)
    if any(place.tags.get(TAG) == kind for place in found):
        return
    names = ", ".join(place.name for place in found) or "none"
    raise PerfsuiteError(
        f"labgrid's coordinator at {client.request.text} has no place with the tag {TAG}={kind} (places: {names}); "
        f"set it with 'labgrid-client -p PLACE set-tags {TAG}={kind}'"
    )
