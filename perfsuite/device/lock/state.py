"""What is known of a lock: who has it, whether the holder still runs, and what to do about it, in one line."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from perfsuite.device.process_start import boot_id, is_there, pid_namespace, process_start

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

    def __post_init__(self) -> None:
        """Believe no more than there can be; what cannot be printed is replaced, and part of a path is another one."""
        for name in ("user", "host", "run_id", "purpose", "began_at", "pid_namespace", "boot_id"):
            object.__setattr__(self, name, printable(name, getattr(self, name))[:_MOST_CHARACTERS])
        least = {"began_ns": 0, "pid": 1, "start_ticks": 0}  # the system takes 0 for whoever asks
        for name, count in ((name, getattr(self, name)) for name in least):
            is_count = isinstance(count, int) and not isinstance(count, bool) and least[name] <= count < _TOO_MANY
            if not (is_count or (count is None and name == "start_ticks")):
                raise ValueError(f"{name} is {type(count).__name__}, no count that there can be")
        folder = self.state_folder
        is_path = isinstance(folder, str) and folder.startswith("/") and folder.isprintable()
        object.__setattr__(self, "state_folder", folder if is_path and len(folder) <= _MOST_PATH_CHARACTERS else "")

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> LockOwner:
        """Rebuild from `to_plain`; raises ValueError for anything else.

        By hand, since the program that installs the suite on a device reads locks before anything else is there.
        """
        try:
            return cls(**{each.name: plain[each.name] for each in fields(cls) if each.name in plain})
        except TypeError as error:
            raise ValueError(str(error)) from None


def printable(name: str, value: object) -> str:
    """Return a text with what a terminal obeys replaced; raises ValueError for what is none."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {type(value).__name__}, no text")
    return "".join(each if each.isprintable() else "?" for each in value)


def _utc_now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


#: A holder that was silent for longer hangs: twelve heartbeats.
SILENCE_LIMIT_S = 60.0


class Holder(str, Enum):
    """How the process that took a lock is now."""

    #: It is there, and its heart beats.
    RUNS = "runs"
    #: It is there and was silent for too long: stopped, or stuck.
    HANGS = "hangs"
    #: It ended without giving the lock back.
    GONE = "gone"
    #: It was before the machine started, so nobody can hold the lock.
    EARLIER_BOOT = "earlier boot"
    #: The lock says nothing that can be read, or its holder cannot be seen from here, and no heart beats.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockState:
    """A lock as it was found."""

    path: str
    #: None where the lock holds nothing that can be read.
    owner: LockOwner | None
    #: The account on the device to which it belongs, by its name or else its number.
    account: str
    holder: Holder
    #: How long ago its heart beat last, and how long it has been held; None is 'not known'.
    beat_age_s: float | None
    held_s: float | None
    #: The number of that account; None is 'not known'.
    uid: int | None = None

    @property
    def is_own(self) -> bool:
        """Whether it belongs to the account of this process: else what it says is a claim of anybody's."""
        return self.uid == os.geteuid()

    @property
    def text(self) -> str:
        """Who has the lock, from where, since when, doing what; and whether the holder still runs."""
        since = f" since {self.owner.began_at}" if self.owner else ""
        held = f" ({_duration(self.held_s)})" if self.held_s is not None else ""
        return f"held by {self._who}{since}{held}; {self._how}"

    def refusal(self, name: str) -> str:
        """Say in one line why the device called `name` cannot be had, and what to do."""
        unlock = f"'perfsuite devices unlock {name}' breaks the lock"
        todo = {
            Holder.RUNS: "wait until it has ended; pytest does so with --perf-wait=10m",
            Holder.HANGS: f"end that process, or {unlock}",
        }
        return f"{name}: {self.text}; {todo.get(self.holder, unlock)}"

    def __post_init__(self) -> None:
        """Replace what cannot be printed."""
        for name in ("path", "account"):
            object.__setattr__(self, name, printable(name, getattr(self, name)))

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name, as JSON can hold them."""
        return {**asdict(self), "holder": self.holder.value}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> LockState:
        """Rebuild from `to_plain`, also of a later version that says more; raises ValueError for anything else."""
        from perfsuite.records.codec import rebuilt  # only where another machine has answered

        return rebuilt(plain, cls)

    @property
    def _who(self) -> str:
        if self.owner is None:
            return f"the account {self.account} there"
        account = "" if self.account == self.owner.user else f", account {self.account} there"
        return f"{self.owner.text}{account}"

    @property
    def _how(self) -> str:
        process = f"its process {self.owner.pid}" if self.owner else "its process"
        beat = f"its last heartbeat was {_duration(self.beat_age_s)} ago" if self.beat_age_s is not None else "no beat"
        return {
            Holder.RUNS: beat,
            Holder.HANGS: f"{process} is there and hangs: {beat}",
            Holder.GONE: f"{process} is gone, crashed or killed: {beat}",
            Holder.EARLIER_BOOT: "that was before the device started",
            Holder.UNKNOWN: f"whether that still runs is unknown: {beat}",
        }[self.holder]


def judged_holder(owner: LockOwner | None, beat_age_s: float | None) -> Holder:
    """Say how the process that took a lock is now.

    The number of a process is believed only with its start time, and only in the namespace that it comes from: from
    another one (a container that shares the folder) the heartbeat is all that can be seen.
    """
    beats = beat_age_s is not None and beat_age_s <= SILENCE_LIMIT_S
    if owner is None:
        return Holder.RUNS if beats else Holder.UNKNOWN
    if owner.boot_id and boot_id() and owner.boot_id != boot_id():
        return Holder.EARLIER_BOOT
    if owner.pid_namespace != pid_namespace():
        return Holder.RUNS if beats else Holder.UNKNOWN
    if is_there(owner.pid, owner.start_ticks) is False:
        return Holder.GONE
    return Holder.RUNS if beats else Holder.HANGS


def seconds_since(moment_ns: int | None) -> float | None:
    """Return how long ago a moment of `time.monotonic_ns` was; None where it is not known, or is still to come."""
    if moment_ns is None or moment_ns > (now_ns := time.monotonic_ns()):
        return None
    return (now_ns - moment_ns) / 1e9


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
