"""Why the change of a case is not always the quotient of the two times beside it."""

from __future__ import annotations

from collections.abc import Iterable

from perfsuite.records.judgement import Judgement
from perfsuite.units import format_ratio

_OF_PAIRS = (
    "change, which is what is judged, is the typical ratio of the pairs, not the quotient of the times beside it"
)
_OF_SESSIONS = (
    "change, which is what is judged, is the typical ratio of this run's samples to the stored ones (the drift of the "
    "sentinels divided out), not the quotient of the times beside it"
)


def change_notes(judgements: Iterable[Judgement]) -> tuple[str, ...]:
    """Say of what the change is, where some case's is not the quotient of its median and its baseline's."""
    apart = [each for each in judgements if _is_apart(each)]
    notes = (_OF_SESSIONS if each.n_pairs is None else _OF_PAIRS for each in apart)
    return tuple(dict.fromkeys(notes))


def _is_apart(judgement: Judgement) -> bool:
    """Whether change and quotient differ as they are shown."""
    if judgement.measured_ns is None or not judgement.baseline_ns or judgement.change_ratio is None:
        return False
    return format_ratio(judgement.change_ratio) != format_ratio(judgement.measured_ns / judgement.baseline_ns)
