"""Who else uses the processors just now: processes by name, and waiting until they are done."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from perfsuite.measure.contention import Contention
from perfsuite.units import NS_PER_S

#: How long one look takes; a shorter one counts as one tick of the kernel's clock.
LOOK_S, _LEAST_LOOK_S = 0.5, 0.01

#: So many looks in a row must be quiet: a few seconds.
_QUIET_LOOKS = 6

#: More names than this nobody reads; less of a processor than this disturbs nobody.
_MAX_NAMED, _LEAST_PROCESSORS = 3, 0.05

#: So many replicates or pairs, none before them valid, show that competition is no moment's disturbance.
SEEN_AFTER = 2

#: A device of whose processor time others had more than this, in each of the first `SEEN_AFTER` runs, is saturated. One
#: busy process of others on every processor gets half of it at most, for the scheduler shares evenly, and may be a
#: compile that is over in a minute: that is noise, which is measured beside. More than half takes several of them on
#: each processor, and whoever measures there has the smaller part of the machine.
SATURATED_RATIO = 0.5


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


def lost_ratio(contention: Contention) -> float:
    """Return the share of the processors that others had, the hypervisor included; what is not known counts as none."""
    return (contention.others_ratio or 0.0) + (contention.steal_ratio or 0.0)


def competition_of(spent: Contention, busy: Iterable[tuple[str, float]]) -> Competition:
    """Sum up one look: how contended it was, and how long which others were on a processor, by their names, s."""
    known = [each for each in (spent.others_ratio, spent.steal_ratio) if each is not None]
    busy_s: dict[str, float] = defaultdict(float)
    for name, used_s in busy:
        busy_s[name] += used_s
    elapsed_s = max(_LEAST_LOOK_S, spent.wall_ns / NS_PER_S)
    shares = sorted(((each_s / elapsed_s, name) for name, each_s in busy_s.items()), reverse=True)
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
