"""Tells a change of the whole machine or build, which moves everything alike, from a change of some operators."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from statistics import median

from perfsuite.expectation.cases import GRAPH_PHASES
from perfsuite.records.attribution import UniformShift
from perfsuite.records.judgement import Judgement
from perfsuite.verdict.parts import Movement, Part, movement_of, parts_by_phase

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

    The shift is the time-weighted median of the operators' log ratios. It is common where prefill, decode, and
    operators that make up four fifths of the time lie within a quarter of it (2 % at least), and where the median
    operator by number shows half of it: a change of the few longest operators is none of everything.
    """
    found = tuple(judgements)
    by_phase = parts_by_phase(found)
    phases = [each for each in map(movement_of, found) if each and each.judgement.case_id in by_phase]
    parts = [part for phase in phases for part in by_phase[phase.judgement.case_id]]
    if len(parts) < _LEAST_OPERATORS or not _has_all_phases(phases):
        return None
    shift = _weighted_median([(part.movement.log_ratio, part.weight_ratio) for part in parts])
    if abs(shift) <= math.log1p(margin_ratio) or not _is_common(shift, phases, parts):
        return None
    moved = (*phases, *(part.movement for part in parts))
    return UniformShift(ratio=math.exp(shift), n_cases=sum(_is_near(each, shift) for each in moved))


def _is_common(shift: float, phases: Sequence[Movement], parts: Sequence[Part]) -> bool:
    near = sum(part.weight_ratio for part in parts if _is_near(part.movement, shift))
    return (
        near >= _LEAST_SHARE * sum(part.weight_ratio for part in parts)
        and all(_is_near(phase, shift) for phase in phases)
        and median(part.movement.log_ratio / shift for part in parts) >= _MEDIAN_PART
    )


def _is_near(movement: Movement, shift: float) -> bool:
    return abs(movement.log_ratio - shift) <= max(_BAND_PART * abs(shift), _LEAST_BAND)


def _has_all_phases(phases: Sequence[Movement]) -> bool:
    names = {phase.judgement.case_id.rpartition("/")[2] for phase in phases}
    return names >= {phase.value for phase in GRAPH_PHASES}


def _weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """Return the least value that has half of the weight at or below it."""
    ordered = sorted(values)
    sums = tuple(accumulate(weight for _, weight in ordered))
    return next(value for (value, _), reached in zip(ordered, sums, strict=True) if reached >= sums[-1] / 2.0)
