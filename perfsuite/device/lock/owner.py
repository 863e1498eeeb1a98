"""Who has a device: what its lock says of the run that holds it, and of the process there that does."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Any

from perfsuite.device.process_start import boot_id, pid_namespace, process_start

#: Longest text of a field that is believed: whoever may write a lock may write anything into it.
_MOST_CHARACTERS = 300

#: Longest path that is believed, so that all fits into what is read of a lock.
_MOST_PATH_CHARACTERS = 1000

#: No count of a kernel is as large: more neither fits into its numbers nor into a float.
_TOO_MANY = 2**63

#: Within the suite's cache: where a run keeps what it has to restore.
STATE_FOLDER = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOwner:
    """A run that has a device; `LockOwner.here` fills in what is known of the process that holds the lock."""

    #: On the desk from which the run was started.
    user: str
    #: That desk.
    host: str
    run_id: str
    #: Such as ``pytest --device=rubikpi``.
    purpose: str
    #: ISO 8601, UTC.
    began_at: str
    #: `time.monotonic_ns` of the device then: a step of its clock does not move it.
    began_ns: int
    #: The process on the device that holds the lock.
    pid: int
    #: When that process started, in clock ticks since the boot; None where ``/proc`` does not say.
    start_ticks: int | None
    #: In which namespace that number is meant; "" where it is not known.
    pid_namespace: str
    #: "" where it is not known.
    boot_id: str
    #: Where that process keeps what is to be restored on the device; "" where it says none.
    state_folder: str = ""

    @classmethod
    def here(cls, *, user: str, host: str, run_id: str, purpose: str, state_folder: str = "") -> LockOwner:
        """Describe a run whose lock this very process, on the device, is about to hold."""
        started = process_start(os.getpid())
        return cls(
            user=user,
            host=host,
            run_id=run_id,
            purpose=purpose,
            began_at=_utc_now(),
            began_ns=time.monotonic_ns(),
            pid=os.getpid(),
            start_ticks=started.ticks if started else None,
            pid_namespace=pid_namespace(),
            boot_id=boot_id(),
            state_folder=state_folder,
        )

    def beginning_now(self) -> LockOwner:
        """Return the same run as one that gets the lock only now: it may have waited."""
        return replace(self, began_at=_utc_now(), began_ns=time.monotonic_ns())

    @property
    def text(self) -> str:
        """Who it is, from where, and what for."""
        return f"{self.user} from {self.host} ({self.purpose})"

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> LockOwner:
        """Rebuild from `to_plain`; what cannot be printed is replaced. Raises ValueError for anything else."""
        texts = ("user", "host", "run_id", "purpose", "began_at", "pid_namespace", "boot_id")
        counts = ("began_ns", "pid", "start_ticks")
        read: dict[str, Any] = {name: _text(plain, name) for name in texts}
        folder = _path(plain, "state_folder")
        return cls(**read, **{name: _count(plain, name) for name in counts}, state_folder=folder)


def _utc_now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _text(plain: Mapping[str, Any], name: str) -> str:
    value = plain.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is {type(value).__name__}, no text")
    return "".join(each if each.isprintable() else "?" for each in value[:_MOST_CHARACTERS])


def _path(plain: Mapping[str, Any], name: str) -> str:
    """Return a whole path as it is written, "" for anything else: part of one is another."""
    value = plain.get(name)
    if not isinstance(value, str) or not value.isprintable() or len(value) > _MOST_PATH_CHARACTERS:
        return ""
    return value if value.startswith("/") else ""


def _count(plain: Mapping[str, Any], name: str) -> Any:
    value = plain.get(name)
    if value is None and name == "start_ticks":
        return None
    least = 1 if name == "pid" else 0  # the system takes 0 for whoever asks
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _TOO_MANY:
        raise ValueError(f"{name} is {type(value).__name__}, no count that there can be")
    return value
