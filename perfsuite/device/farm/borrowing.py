"""Borrows a board of a farm for a run: reserve, wait, lock, and give back at the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Annotated, Any

from msgspec import Meta

from perfsuite.device.farm.client import (
    Client,
    Place,
    RefusedError,
    new_holder,
    parsed_reservations,
    places,
)
from perfsuite.device.farm.request import FarmRequest
from perfsuite.device.farm.supervision import Supervision, break_lock
from perfsuite.device.profile.values import Port
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError, LinkError, LockedError, MeasurementError, PerfsuiteError, require
from perfsuite.records.codec import from_plain

_KIND = "NetworkService"
_NAME = r"[A-Za-z0-9_:\[][A-Za-z0-9._%:\[\]+-]*"
_PLAIN = "letters, digits and . _ - : % [ ] +"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Service:
    """How a place is reached; no name is what ssh could take for an option, or for two."""

    address: Annotated[str, Meta(pattern=rf"\A{_NAME}\Z", description=f"a host's name: {_PLAIN}")]
    username: Annotated[str, Meta(pattern=rf"\A(?:{_NAME})?\Z", description=f"a user's name: {_PLAIN}")] | None = None
    port: Port | None = None


def place_reach(client: Client, place: str, reach: Reach) -> Reach:
    """Return the way to a board that is locked: keys and folders of `reach`, address and port of the place.

    Raises DeviceError: the place has no NetworkService, several, or one whose address, user or port cannot be.
    """
    found = list(services(client.call("-p", place, "env")))
    if len(found) != 1:
        seen = ", ".join(str(each.get("address")) if isinstance(each, Mapping) else repr(each) for each in found)
        raise DeviceError(
            f"place {place} has {len(found)} resources of the kind {_KIND}{f' ({seen})' if seen else ''}, expected 1; "
            f"see 'labgrid-client -p {place} show'"
        )
    where, todo = f"place {place}: its {_KIND}", "correct the exporter's configuration"
    service = from_plain(found[0], _Service, where, DeviceError, todo)
    address = f"{service.username}@{service.address}" if service.username else service.address
    return replace(reach, way="ssh", address=address, port=service.port)


def services(printed: str) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of each NetworkService of an environment that ``labgrid-client env`` printed."""
    yaml: Any = import_module("yaml")  # labgrid brings it
    try:
        targets = yaml.safe_load(printed)["targets"].values()
        resources = [resource for target in targets for resource in target["resources"]]
        yield from (each[_KIND] for each in resources if _KIND in each)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise DeviceError(f"labgrid: 'env' printed what cannot be read ({type(error).__name__})") from error


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
        now = "; ".join(_holder_text(client, place) for place in places(client) if place.tags.get(TAG) == kind)
        if now != told:
            told = now
            tell(f"waiting for a board with {wanted}: {told}")
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise LockedError(
                f"no board with {wanted} was free within {client.request.wait_limit_s:g} s: {told}; wait longer with "
                "--farm-wait=2h, or break the lock of a run that is dead with --farm-break=PLACE"
            )
        # which also keeps the reservation from expiring
        printed = client.call_or_none("wait", reservation.token, limit_s=max(min(left_s, _LOOK_PERIOD_S), 2.0))
        if printed is not None:
            states = [line.partition(":")[2].strip() for line in printed.splitlines() if line.startswith("state:")]
            state = states[-1] if states else "unknown"
    if state not in ("allocated", "acquired"):
        raise PerfsuiteError(f"labgrid: the reservation of {wanted} is {state}; somebody cancelled it, run again")
    return reservation.token


def _holder_text(client: Client, place: Place) -> str:
    """Say who has a board, and how a lock that nobody needs any more is broken."""
    if place.holder == client.holder:
        return f"{place.name} is set aside"
    if place.holder is None:
        return f"{place.name} is {'reserved, not yet locked' if place.token else 'free'}"
    text = f"{place.name} is locked by {place.holder.text}"
    if place.holder.is_alive_here is False:
        return f"{text}, and no such process is here any more; --farm-break={place.name} breaks the lock"
    return text


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmBoard:
    """A board that is locked for this run."""

    #: labgrid's name of it.
    place: str
    #: How it is reached.
    reach: Reach
    #: The name by which the run holds it, ``HOST/USER+perfsuite-TIME-PID-X``.
    holder_name: str
    #: The process that gives it back if the run dies.
    supervisor_pid: int


@contextmanager
def borrowed_board(
    kind: str, reach: Reach, request: FarmRequest, *, tell: Tell, look: Callable[[Reach], None] = lambda reach: None
) -> Iterator[FarmBoard]:
    """Hold a free board of a kind, and give it back at the end, whatever that is.

    A place that cannot be used, one that `look` cannot reach, and one that must be avoided, is kept locked until the
    end while there is another one of the kind: labgrid would give it again at once. A run that is killed is followed by
    its supervisor, which gives back all that it has within seconds.

    The kind is the value of the tag ``board`` of the farm's places, and that of the device's profile, such as
    ``rubikpi``. The profile's `reach` gives keys and folders, the place the address. What `tell` hears are
    lines for the user: who has the boards, which one was got, what was given back.

    Raises PerfsuiteError: labgrid is not installed, no board is of the kind, or the place says no address; LockedError:
    no board was free within the limit, or a lock that had to be broken is that of a run that is alive; LinkError: the
    coordinator cannot be reached.
    """
    require("labgrid", "--farm")
    if reach.way in ("adb", "serial"):
        text = f"--farm: a board of a farm is reached by ssh, and this device by {reach.way}; name another --device"
        raise DeviceError(text)
    client = Client(request=request, holder=new_holder())
    refuse_unknown_kind(client, kind)  # a coordinator that is away is found before anything is begun
    if request.broken_place is not None:
        tell(break_lock(client, request.broken_place))
    supervision = Supervision(client)
    place = None
    try:
        place, found = _usable_place(client, kind, reach, tell, look)
        board = FarmBoard(place=place, reach=found, holder_name=client.holder.name, supervisor_pid=supervision.pid)
        tell(f"borrowed {place} ({board.reach.text}) as {client.holder.name}")
        yield board
    finally:
        try:
            given = supervision.give_back()
            if place is not None and place not in given:
                tell(f"{place} was no longer this run's: somebody broke its lock, or the coordinator was started anew")
            elif place is not None:
                tell(f"gave {place} back")
        except PerfsuiteError as error:  # the run's own end counts for more
            tell(f"the board was not given back: {error}; its supervisor tries for 10 min")


def _usable_place(
    client: Client, kind: str, reach: Reach, tell: Tell, look: Callable[[Reach], None]
) -> tuple[str, Reach]:
    """Lock a place, and another one while that one is of no use; return it with the way to it."""
    deadline_s = time.monotonic() + client.request.wait_limit_s
    kept: set[str] = set()
    n_refused = 0
    while True:
        token = reserve(client, kind, tell, deadline_s=deadline_s)
        others = {each.name for each in places(client) if each.tags.get(TAG) == kind} - kept
        try:
            place = _locked(client, token)
            kept.add(place)
            others.discard(place)
            if place in client.request.avoided_places and others - client.request.avoided_places:
                raise DeviceError(f"{place} must be avoided")
            found = place_reach(client, place, reach)
            try:
                look(found)
            except (LinkError, MeasurementError) as error:  # another one of its kind may stand in for it
                raise DeviceError(f"place {place}: {error}") from None
        except (DeviceError, RefusedError) as error:
            n_refused += isinstance(error, RefusedError)
            if len(others) <= n_refused:
                raise
            tell(f"{error}; it is set aside, and another one is asked for")
        else:
            return place, found


def _locked(client: Client, token: str) -> str:
    try:
        locked = re.search(r"^acquired place (.+)$", client.call("-p", f"+{token}", "acquire"), re.MULTILINE)
    except RefusedError as error:
        names = (each.name for each in places(client) if each.token == token)
        raise RefusedError(f"place {next(names, f'of the reservation {token}')}: {error}") from None
    if locked is None:
        raise DeviceError("labgrid: 'acquire' did not say which place it locked; run again")
    return locked[1]
