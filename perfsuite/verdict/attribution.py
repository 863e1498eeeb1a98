"""Attributes what a phase lost to the operators that it is made of."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

from perfsuite.records.events import EMBEDDING_ROLE, Phase
from perfsuite.records.outcome import Attribution, Carrier, Judgement, Outcome, PhaseAttribution, UniformShift

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
        return math.log1p(max(self.lost_ns / self.old_ns, -0.999_999))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A case within its phase."""

    movement: Movement
    #: Its name within the phase.
    role: str
    #: The old time of all parts of its phase.
    total_ns: float

    @property
    def is_alone(self) -> bool:
        return self.movement.judgement.only_side is not None

    @property
    def weight_ratio(self) -> float:
        """Its old time over that of all parts of its phase, so that a prefill and a decode step weigh the same."""
        return self.movement.old_ns / self.total_ns

    @property
    def lost_ratio(self) -> float:
        """What it lost, over the old time of all parts of its phase."""
        return self.movement.lost_ns / self.total_ns


def parent_id(case_id: str) -> str | None:
    """Return the case that holds another; None where nothing does.

    An operator belongs to its phase, except the gather of embeddings, which is a phase of its own.
    """
    kind, _, rest = case_id.partition("/")
    within, _, role = rest.rpartition("/")
    if kind != "operator" or not within or role == EMBEDDING_ROLE:
        return None
    return f"phase/{within}"


def movement_of(judgement: Judgement) -> Movement | None:
    """Return how a case moved; None where it was not compared, or what it measured cannot be trusted."""
    old_ns, lost_ns = judgement.old_ns, judgement.lost_ns
    if old_ns is None or lost_ns is None:
        return None
    if judgement.only_side is None and (judgement.outcome in _UNTRUSTED or not old_ns):
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
    total_ns = sum(each.old_ns for each in movements) or 1.0
    for each in movements:
        yield Part(movement=each, role=each.judgement.case_id.rpartition("/")[2], total_ns=total_ns)


#: The phases that make up a request, one or the other: it is read and answered, or made into an embedding.
_REQUESTS = ({Phase.PREFILL.value, Phase.DECODE.value}, {Phase.EMBED.value})
#: With fewer operators than this, nothing can be said of all.
_LEAST_OPERATORS = 5
#: How far from the common shift a case may lie: a part of the shift, and at least this log ratio.
_BAND_PART, _LEAST_BAND = 0.25, 0.02
#: The least share of the time that must lie within the band.
_LEAST_SHARE = 0.8
#: The part of the shift that the median operator must show where each counts the same, however short it is.
_MEDIAN_PART = 0.5


def uniform_shift(judgements: Iterable[Judgement], *, margin_ratio: float) -> UniformShift | None:
    """Return the shift that phases and operators have in common; None where they have none beyond the margin.

    The shift is the time-weighted median of the operators' log ratios. It is common where the phases of a
    request, and operators that make up four fifths of the time, lie within a quarter of it (2 % at least), and where
    the median operator by number shows half of it: a change of the few longest operators is none of everything.
    """
    found = tuple(judgements)
    by_phase = parts_by_phase(found)
    phases = [each for each in map(movement_of, found) if each and each.judgement.case_id in by_phase]
    parts = [part for phase in phases for part in by_phase[phase.judgement.case_id] if not part.is_alone]
    names = {phase.judgement.case_id.rpartition("/")[2] for phase in phases}
    if len(parts) < _LEAST_OPERATORS or not any(names >= request for request in _REQUESTS):
        return None
    shift = _weighted_median([(part.movement.log_ratio, part.weight_ratio) for part in parts])
    near = sum(part.weight_ratio for part in parts if _is_near(part.movement, shift))
    is_common = (
        abs(shift) > math.log1p(margin_ratio)
        and near >= _LEAST_SHARE * sum(part.weight_ratio for part in parts)
        and all(_is_near(phase, shift) for phase in phases)
        and median(part.movement.log_ratio / shift for part in parts) >= _MEDIAN_PART
    )
    if not is_common:
        return None
    moved = (*phases, *(part.movement for part in parts))
    return UniformShift(ratio=math.exp(shift), n_cases=sum(_is_near(each, shift) for each in moved))


def _is_near(movement: Movement, shift: float) -> bool:
    return abs(movement.log_ratio - shift) <= max(_BAND_PART * abs(shift), _LEAST_BAND)


def _weighted_median(values: Sequence[tuple[float, float]]) -> float:
    ordered = sorted(values)
    sums = tuple(accumulate(weight for _, weight in ordered))
    return next(value for (value, _), reached in zip(ordered, sums, strict=True) if reached >= sums[-1] / 2.0)


MAX_CARRIERS = 5
#: What parts that are not significant by themselves must carry together to be named.
_MOST_RATIO = 0.5


def attribute(judgements: Iterable[Judgement], *, margin_ratio: float) -> Attribution:
    """Return where the time of each phase went, with the shift beyond the margin that everything has in common."""
    found = tuple(judgements)
    return Attribution(phases=phase_attributions(found), uniform_shift=uniform_shift(found, margin_ratio=margin_ratio))


def phase_attributions(judgements: Iterable[Judgement]) -> tuple[PhaseAttribution, ...]:
    """Attribute each phase that is REGRESSED or IMPROVED and whose parts were compared too.

    What a case lost is its measured time less that time over the estimated change. Named are the parts that one side
    alone has, whichever way they count, and those with the outcome of the phase, largest first; where there is none of
    these, the fewest that moved furthest and make up half of what is left. What is not named is unexplained.
    """
    found = tuple(judgements)
    parts = parts_by_phase(found)
    changed = [each for each in found if each.outcome in (Outcome.REGRESSED, Outcome.IMPROVED)]
    return tuple(
        _attributed(each, each.lost_ns, parts[each.case_id])
        for each in changed
        if each.case_id in parts and each.lost_ns
    )


def carrier_of(judgements: Iterable[Judgement]) -> str | None:
    """Return the role whose REGRESSED or new cases lost the most, as a share of the phase; None without any."""
    lost_ratio: dict[str, float] = defaultdict(float)
    for part in (part for parts in parts_by_phase(judgements).values() for part in parts):
        judgement = part.movement.judgement
        if judgement.outcome is Outcome.REGRESSED or judgement.only_side == "new":
            lost_ratio[part.role] += part.lost_ratio
    return max(lost_ratio, key=lambda role: lost_ratio[role], default=None)


def _attributed(phase: Judgement, lost_ns: int, parts: Sequence[Part]) -> PhaseAttribution:
    ordered = sorted(parts, key=lambda part: -abs(part.movement.lost_ns))
    alone = [part for part in ordered if part.is_alone][:MAX_CARRIERS]
    moved = [part for part in ordered if part.movement.lost_ns * lost_ns > 0 and not part.is_alone]
    significant = [part for part in moved if part.movement.judgement.outcome is phase.outcome][:MAX_CARRIERS]
    left_ns = lost_ns - sum(part.movement.lost_ns for part in alone)
    named = [*alone, *(significant or (_most(moved, left_ns) if left_ns * lost_ns > 0 else ()))]
    return PhaseAttribution(
        case_id=phase.case_id,
        lost_ns=lost_ns,
        carriers=tuple(
            Carrier(
                case_id=part.movement.judgement.case_id,
                role=part.role,
                lost_ns=part.movement.lost_ns,
                share_ratio=part.movement.lost_ns / lost_ns,
                is_significant=part.is_alone or bool(significant),
                only_side=part.movement.judgement.only_side,
            )
            for part in named
        ),
        unexplained_ns=lost_ns - sum(part.movement.lost_ns for part in named),
    )


def _most(moved: Sequence[Part], phase_lost_ns: int) -> Sequence[Part]:
    """Return the fewest parts that make up most of the loss; none where it takes too many."""
    sums = accumulate(abs(part.movement.lost_ns) for part in moved[:MAX_CARRIERS])
    enough = (at for at, total in enumerate(sums, start=1) if total >= _MOST_RATIO * abs(phase_lost_ns))
    return moved[: next(enough, 0)]
