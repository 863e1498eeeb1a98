"""The tree of cases: which phase holds a case, and how each part of a phase moved."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfsuite.records.outcome import Judgement, Outcome
from perfsuite.trace.samples import EMBEDDING_ROLE

#: What such a judgement measured is nothing to reckon with.
_UNTRUSTED = (Outcome.INVALID, Outcome.IMPOSSIBLE, Outcome.INCOMPARABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """What a case took before and after."""

    judgement: Judgement
    old_ns: float
    #: New minus old; negative where time was won.
    lost_ns: int

    @property
    def log_ratio(self) -> float:
        """Logarithm of new over old."""
        return math.log1p(max(self.lost_ns / self.old_ns, -0.999_999))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A case within its phase."""

    movement: Movement
    #: Its name within the phase.
    role: str
    #: Its old time over that of all parts of its phase, so that a prefill and a decode step weigh the same.
    weight_ratio: float

    @property
    def lost_ratio(self) -> float:
        """What it lost, over the old time of all parts of its phase."""
        return self.weight_ratio * self.movement.lost_ns / self.movement.old_ns


def parent_id(case_id: str) -> str | None:
    """Return the case that holds another; None where nothing does.

    An operator belongs to its phase, but for the gather of embeddings, which is a phase of its own.
    """
    kind, _, rest = case_id.partition("/")
    within, _, role = rest.rpartition("/")
    if kind != "operator" or not within or role == EMBEDDING_ROLE:
        return None
    return f"phase/{within}"


def movement_of(judgement: Judgement) -> Movement | None:
    """Return how a case moved; None where it was not compared, or what it measured cannot be trusted."""
    old_ns, lost_ns = judgement.old_ns, judgement.lost_ns
    if judgement.outcome in _UNTRUSTED or not old_ns or lost_ns is None:
        return None
    return Movement(judgement=judgement, old_ns=old_ns, lost_ns=lost_ns)


def parts_by_phase(judgements: Iterable[Judgement]) -> Mapping[str, tuple[Part, ...]]:
    """Group what moved by the case that holds it."""
    held: dict[str, list[Movement]] = defaultdict(list)
    for each in judgements:
        phase_id, movement = parent_id(each.case_id), movement_of(each)
        if phase_id is not None and movement is not None:
            held[phase_id].append(movement)
    return {phase_id: tuple(_parts(movements)) for phase_id, movements in held.items()}


def _parts(movements: Sequence[Movement]) -> Iterator[Part]:
    total_ns = sum(each.old_ns for each in movements)
    for each in movements:
        role = each.judgement.case_id.rpartition("/")[2]
        yield Part(movement=each, role=role, weight_ratio=each.old_ns / total_ns)
