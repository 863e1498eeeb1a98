"""Who else uses the processors just now: processes by name, from ``/proc``, and waiting until they are done.

*Source*: proc(5), ``/proc/PID/stat``: fields 2 (name), 4 (parent), 14 and 15 (time on a processor), 22 (start).
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfsuite.measure.contention import ContentionMark
from perfsuite.units import NS_PER_S

#: How long one look takes.
LOOK_S = 0.5

#: So many looks in a row must be quiet: a few seconds.
_QUIET_LOOKS = 6

#: More names than this nobody reads; less of a processor than this disturbs nobody.
_MAX_NAMED, _LEAST_PROCESSORS = 3, 0.05

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

#: So many replicates or pairs, none before them valid, show that competition is no moment's disturbance.
SEEN_AFTER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Competition:
    """What others had of the processors during one look."""

    #: Share of the processors that this process may use, what the hypervisor took included; None where it is not known.
    others_ratio: float | None
    #: By name: processors that processes of it kept busy, the most first; nothing of those that cannot be seen.
    processors: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Who competes, as far as it can be seen."""
        seen = [(name, n_busy) for name, n_busy in self.processors.items() if n_busy >= _LEAST_PROCESSORS]
        named = ", ".join(f"{name} {n_busy * 100.0:.0f} %" for name, n_busy in seen[:_MAX_NAMED])
        if self.others_ratio is None:
            return f"{named} of a processor" if named else "who competes cannot be seen"
        share = f"others take {self.others_ratio * 100.0:.0f} % of the processors"
        return f"{share} ({named} of one)" if named else share

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {"others_ratio": self.others_ratio, "processors": dict(self.processors)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Competition:
        """Rebuild from `to_plain`."""
        return cls(others_ratio=plain["others_ratio"], processors=dict(plain["processors"]))


def look_for_competition(look_s: float = LOOK_S, proc: Path = Path("/proc")) -> Competition:
    """Look at all processes but this one and its children for a while."""
    before, mark = _processes(proc), ContentionMark.take(proc)
    time.sleep(look_s)
    after, later = _processes(proc), ContentionMark.take(proc)
    spent = mark.until(later)
    known = [each for each in (spent.others_ratio, spent.steal_ratio) if each is not None]
    elapsed_ticks = max(1.0, spent.wall_ns / NS_PER_S * _TICKS_PER_S)
    own = _own_numbers({number: process.parent for (number, _), process in after.items()})
    ticks: dict[str, int] = defaultdict(int)
    for identity, process in after.items():
        if identity[0] not in own:
            ticks[process.name] += process.ticks - (before[identity].ticks if identity in before else 0)
    shares = sorted(((n_ticks / elapsed_ticks, name) for name, n_ticks in ticks.items() if n_ticks > 0), reverse=True)
    return Competition(
        others_ratio=sum(known) if known else None, processors={name: round(share, 3) for share, name in shares}
    )


def await_quiet(look: Callable[[], Competition], *, limit_ratio: float, wait_s: float) -> bool:
    """Look until others had less than a share for a few seconds; return False where that takes longer than `wait_s`."""
    until_s = time.monotonic() + wait_s
    n_quiet = 0
    while n_quiet < _QUIET_LOOKS:
        if time.monotonic() >= until_s:
            return False
        ratio = look().others_ratio
        if ratio is None:
            return False
        n_quiet = n_quiet + 1 if ratio <= limit_ratio else 0
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    name: str
    parent: int
    ticks: int


#: A number is given to another process when its own has ended: they differ in their start.
_Identity = tuple[int, int]


def _processes(proc: Path) -> dict[_Identity, _Process]:
    """Read what may be read of each process."""
    found = {}
    for place in proc.iterdir():
        if place.name.isdigit():
            try:
                head, _, rest = (place / "stat").read_text("utf-8", "replace").rpartition(")")
                fields = rest.split()
                ticks, start = int(fields[11]) + int(fields[12]), int(fields[19])
                process = _Process(name=head.partition("(")[2], parent=int(fields[1]), ticks=ticks)
            except (OSError, ValueError, IndexError):  # it has ended, or is nobody's business
                continue
            found[int(place.name), start] = process
    return found


def _own_numbers(parents: Mapping[int, int]) -> set[int]:
    """Return the numbers of this process, of its children, and of theirs."""
    own, newest = set[int](), {os.getpid()}
    while newest:
        own |= newest
        newest = {number for number, parent in parents.items() if parent in newest} - own
    return own
