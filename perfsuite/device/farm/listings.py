"""Places and reservations as labgrid's client lists them.

*Source*: labgrid 26.0.1, ``labgrid-client -v places`` and ``labgrid-client reservations``: a heading such as
``Place 'board1':``, then ``name: value`` with two spaces before it, and what belongs below it with four.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from perfsuite.device.farm.client import Client
from perfsuite.device.farm.holder import Holder, holder_named

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
    return tuple(_place(name, fields) for name, fields in _blocks(client.call("-v", "places"), "Place"))


def reservations(client: Client) -> tuple[Reservation, ...]:
    """Return the reservations of everybody; raises as `Client.call`."""
    return parsed_reservations(client.call("reservations"))


def parsed_reservations(printed: str) -> tuple[Reservation, ...]:
    """Return the reservations that a call printed."""
    return tuple(
        Reservation(token=token, owner=holder_named(fields.get("owner", "")), state=fields.get("state", ""))
        for token, fields in _blocks(printed, "Reservation")
    )


def _place(name: str, fields: Mapping[str, str]) -> Place:
    acquired = fields.get("acquired", "None")
    tags = (pair.partition("=") for pair in fields.get("tags", "").split(", ") if pair)
    return Place(
        name=name,
        tags={key: value for key, _, value in tags},
        holder=None if acquired in ("", "None") else holder_named(acquired),
        token=fields.get("reservation") or None,
    )


def _blocks(printed: str, kind: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the name of each block with its fields; what lies deeper is left out."""
    name: str | None = None
    fields: dict[str, str] = {}
    for line in printed.splitlines():
        if line.startswith(f"{kind} '") and line.endswith("':"):
            if name is not None:
                yield name, fields
            name, fields = line[len(kind) + 2 : -2], {}
        elif match := _FIELD.fullmatch(line):
            fields.setdefault(match[1], match[2] or "")
    if name is not None:
        yield name, fields
