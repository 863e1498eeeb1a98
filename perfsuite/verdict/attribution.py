"""Attributes what a phase lost to the operators that it is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate

from perfsuite.records.attribution import Attribution, Carrier, PhaseAttribution
from perfsuite.records.judgement import Judgement
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.parts import Part, parts_by_phase
from perfsuite.verdict.shift import uniform_shift

#: No more carriers than this are named for a phase.
MAX_CARRIERS = 5
#: What parts that are not significant by themselves must carry together to be named.
_MOST_RATIO = 0.5


def attribute(judgements: Iterable[Judgement], *, margin_ratio: float) -> Attribution:
    """Return where the time of each phase went, with the shift beyond the margin that everything has in common."""
    found = tuple(judgements)
    return Attribution(phases=phase_attributions(found), uniform_shift=uniform_shift(found, margin_ratio=margin_ratio))


def phase_attributions(judgements: Iterable[Judgement]) -> tuple[PhaseAttribution, ...]:
    """Attribute each phase that is REGRESSED or IMPROVED and whose parts were compared too.

    What a case lost is its measured time less that time over the estimated change. Named are the parts with the
    outcome of the phase, largest first; where there is none, the fewest that moved furthest and make up half of the
    phase's loss. What is not named is unexplained.
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
    """Return the role whose REGRESSED cases lost the most, each loss as a share of its phase; None without any."""
    lost_ratio: dict[str, float] = defaultdict(float)
    for part in (part for parts in parts_by_phase(judgements).values() for part in parts):
        if part.movement.judgement.outcome is Outcome.REGRESSED:
            lost_ratio[part.role] += part.lost_ratio
    return max(lost_ratio, key=lambda role: lost_ratio[role], default=None)


def _attributed(phase: Judgement, lost_ns: int, parts: Sequence[Part]) -> PhaseAttribution:
    same_way = [part for part in parts if part.movement.lost_ns * lost_ns > 0]
    moved = sorted(same_way, key=lambda part: -abs(part.movement.lost_ns))
    significant = [part for part in moved if part.movement.judgement.outcome is phase.outcome][:MAX_CARRIERS]
    named = significant or _most(moved, lost_ns)
    return PhaseAttribution(
        case_id=phase.case_id,
        lost_ns=lost_ns,
        carriers=tuple(_carrier(part, lost_ns, is_significant=bool(significant)) for part in named),
        unexplained_ns=lost_ns - sum(part.movement.lost_ns for part in named),
    )


def _most(moved: Sequence[Part], phase_lost_ns: int) -> Sequence[Part]:
    """Return the fewest parts that make up most of the loss; none where it takes too many."""
    sums = accumulate(abs(part.movement.lost_ns) for part in moved[:MAX_CARRIERS])
    enough = (at for at, total in enumerate(sums, start=1) if total >= _MOST_RATIO * abs(phase_lost_ns))
    return moved[: next(enough, 0)]


def _carrier(part: Part, phase_lost_ns: int, *, is_significant: bool) -> Carrier:
    return Carrier(
        case_id=part.movement.judgement.case_id,
        role=part.role,
        lost_ns=part.movement.lost_ns,
        share_ratio=part.movement.lost_ns / phase_lost_ns,
        is_significant=is_significant,
    )
