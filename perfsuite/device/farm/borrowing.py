"""Borrows a board of a farm for a run: reserve, wait, lock, and give back at the end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from perfsuite.device.farm.client import Client, RefusedError, refuse_without_labgrid
from perfsuite.device.farm.holder import new_holder
from perfsuite.device.farm.listings import places
from perfsuite.device.farm.request import FarmRequest
from perfsuite.device.farm.returning import break_lock
from perfsuite.device.farm.service import place_reach
from perfsuite.device.farm.supervision import Supervision
from perfsuite.device.farm.waiting import TAG, Tell, refuse_unknown_kind, reserve
from perfsuite.device.reach import Reach
from perfsuite.errors import DeviceError, PerfsuiteError


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
def borrowed_board(kind: str, reach: Reach, request: FarmRequest, *, tell: Tell) -> Iterator[FarmBoard]:
    """Hold a free board of a kind, and give it back at the end, whatever that is.

    A place that cannot be used, and one that is to be avoided, is kept locked until the end while there is another one
    of the kind: labgrid would give it again at once. A run that is killed is followed by its supervisor, which gives
    back all that it has within seconds.

    The kind is the value of the tag ``board`` of the farm's places, and that of the device's profile, such as
    ``rubikpi``. Of the profile's `reach` the keys and folders count, the address is the place's. What `tell` hears are
    lines for the user: who has the boards, which one was got, what was given back.

    Raises PerfsuiteError: labgrid is not installed, no board is of the kind, or the place says no address; LockedError:
    no board was free within the limit, or a lock that was to be broken is that of a run that is alive; LinkError: the
    coordinator cannot be reached.
    """
    refuse_without_labgrid()
    if reach.way == "adb":
        raise DeviceError("--farm: a board of a farm is reached by ssh, and this device by adb; name another --device")
    client = Client(request=request, holder=new_holder())
    refuse_unknown_kind(client, kind)  # a coordinator that is away is found before anything is begun
    if request.broken_place is not None:
        tell(break_lock(client, request.broken_place))
    supervision = Supervision(client)
    place = None
    try:
        place, found = _usable_place(client, kind, reach, tell)
        board = FarmBoard(place=place, reach=found, holder_name=client.holder.name, supervisor_pid=supervision.pid)
        tell(f"borrowed {place} ({board.reach.text}) as {client.holder.name}")
        yield board
    finally:
        _give_back(supervision, place, tell)


def _usable_place(client: Client, kind: str, reach: Reach, tell: Tell) -> tuple[str, Reach]:
    """Lock a place, and another one while that one is of no use; return it with the way to it."""
    deadline_s = time.monotonic() + client.request.wait_limit_s
    kept: set[str] = set()
    n_refused = 0
    while True:
        token = reserve(client, kind, tell, deadline_s=deadline_s)
        others = {each.name for each in places(client) if each.tags.get(TAG) == kind} - kept
        try:
            place = _locked_place(client.call("-p", f"+{token}", "acquire"))
            kept.add(place)
            others.discard(place)
            if place not in client.request.avoided_places or not others - client.request.avoided_places:
                return place, place_reach(client, place, reach)
            tell(f"{place} is to be avoided; it is set aside, and another one is asked for")
        except (DeviceError, RefusedError) as error:
            n_refused += isinstance(error, RefusedError)
            if len(others) <= n_refused:
                raise
            tell(f"{error}; it is set aside, and another one is asked for")


def _locked_place(printed: str) -> str:
    """Return the place that ``labgrid-client acquire`` says to have locked."""
    match = re.search(r"^acquired place (.+)$", printed, re.MULTILINE)
    if match is None:
        raise DeviceError("labgrid: 'acquire' did not say which place it locked; run again")
    return match[1]


def _give_back(supervision: Supervision, place: str | None, tell: Tell) -> None:
    """Give back, and tell what went wrong: the run's own end counts for more."""
    try:
        given = supervision.give_back()
    except PerfsuiteError as error:
        tell(f"the board was not given back: {error}")
        return
    if place is not None and place not in given:
        tell(f"{place} was no longer this run's: somebody broke its lock, or the coordinator was started anew")
    elif place is not None:
        tell(f"gave {place} back")
