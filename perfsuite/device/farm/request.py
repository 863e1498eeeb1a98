"""What is asked of a farm: which coordinator, how long a board is waited for, what lock is broken, what is avoided."""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfsuite.errors import PerfsuiteError

#: Longest wait for a board of a farm where nothing else is said.
DEFAULT_FARM_WAIT = "1h"

_LENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smh]?)", re.ASCII)

_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def length_s(text: str) -> float | None:
    """Return the seconds that a text means, without a unit as well; None where it is no length of time."""
    match = _LENGTH.fullmatch(text)
    return None if match is None else float(match[1]) * _UNITS_S[match[2]]


#: ``HOST`` or ``HOST:PORT``, as ``labgrid-client --coordinator`` takes them; no option of its own.
_COORDINATOR = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._][A-Za-z0-9._-]*)(?::\d{1,5})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmRequest:
    """Where a board is borrowed, and how."""

    #: ``HOST[:PORT]``; None leaves it to labgrid's own variable LG_COORDINATOR, and that to 127.0.0.1:20408.
    coordinator: str | None = None
    #: Longest wait for a board that others have.
    wait_limit_s: float = 3600.0
    #: A place whose lock is broken first, whoever has it; None breaks none.
    broken_place: str | None = None
    #: Places that are taken only where there is no other of the kind, such as those that broke a run before.
    avoided_places: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        return self.coordinator or "LG_COORDINATOR (127.0.0.1:20408 where that is not set)"


def farm_request(
    coordinator: str = "", *, wait: str = DEFAULT_FARM_WAIT, broken_place: str | None = None, avoided: str | None = None
) -> FarmRequest:
    """Check what the options ``--farm``, ``--farm-wait``, ``--farm-break`` and ``--farm-avoid`` were given.

    Raises PerfsuiteError: a value is not of its form.
    """
    if coordinator and not _COORDINATOR.fullmatch(coordinator):
        raise PerfsuiteError(f"--farm={coordinator}: expected the coordinator as HOST or HOST:PORT")
    wait_limit_s = length_s(wait)
    if wait_limit_s is None:
        raise PerfsuiteError(f"--farm-wait={wait}: expected a time such as 90s, 30m or 2h")
    return FarmRequest(
        coordinator=coordinator or None,
        wait_limit_s=wait_limit_s,
        broken_place=broken_place or None,
        avoided_places=frozenset(filter(None, (avoided or "").split(","))),
    )
