"""Who has a device for a while, and what that came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The run or command that wants a machine, in words for others who want it."""

    #: The device's name on the desk.
    name: str
    user: str
    #: The desk.
    host: str
    run_id: str
    #: Such as ``pytest --device=rubikpi``.
    purpose: str
    #: How long to wait for somebody else who has it, s.
    wait_s: float = 0.0
    #: Where locks lie; None is the machine's one place.
    lock_folder: str | None = None
    #: Whether processes of one run share the lock, as on this machine; on a board one that has it was left behind.
    is_shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What having the machine came to so far."""

    #: What a reader of the run should know.
    notes: tuple[str, ...] = ()
    #: Why what is measured cannot be trusted.
    problems: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Held:
        """Undo `to_plain`."""
        return cls(notes=tuple(plain["notes"]), problems=tuple(plain["problems"]))


NOTHING_HELD = Held()
