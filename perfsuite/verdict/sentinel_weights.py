"""How far the cases of a device follow its sentinels: fitted to its stored sessions, where that makes them steadier.

A profile states a weight for each sentinel. A device whose sessions are stored shows its own: how a session's cases
stood to those of the others, against how its sentinel did.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from perfsuite.verdict.drift import sentinel_of
from perfsuite.verdict.entry import BaselineEntry, StoredSession

#: Fewer sessions than this say nothing of how cases follow a sentinel.
MIN_SESSIONS = 6

#: The standard deviation of weights about 0 that is taken for granted: most lie within -1 and 1.
_PRIOR_DEVIATION = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """A session, in logarithms: its sentinel, and the middle of its cases against their own means."""

    sentinel: float
    cases: float


def fitted_weights(entry: BaselineEntry, stated: Mapping[str, float]) -> dict[str, float]:
    r"""Return the weights that an entry's own sessions give, and the stated ones where they give none.

    Of S sessions with the logarithms :math:`x_s` of the sentinel and :math:`y_s` of the cases that follow it, both
    about their means, the weight is the ridge estimate

    .. math:: w = \frac{\sum x_s y_s}{\sum x_s^2 + \sigma^2 / \tau^2}

    with the variance :math:`\sigma^2` of what a straight line leaves and :math:`\tau = 0.5`: few sessions, or a
    sentinel that hardly moved, leave it near 0. It counts only where each session, corrected by the weight of the
    others, lies nearer to these than without any correction, in the mean of squares; otherwise nothing is corrected.

    *Source*: Hoerl and Kennard, Ridge regression, 1970.
    """
    names = {name for session in entry.sessions for name in session.sentinels_ns}
    found = {name: _points(entry, name) for name in names}
    return {**stated, **{name: _weight(points) for name, points in found.items() if len(points) >= MIN_SESSIONS}}


def _points(entry: BaselineEntry, sentinel: str) -> list[_Point]:
    sessions = [session for session in entry.sessions if session.sentinel_ns(sentinel)]
    case_ids = [case_id for case_id in entry.case_ids if sentinel_of(case_id) == sentinel]
    shifts: dict[int, list[float]] = defaultdict(list)
    for case_id in case_ids:
        logs = {place: _log(each, case_id) for place, each in enumerate(sessions) if each.samples_ns.get(case_id)}
        if len(logs) == len(sessions):
            for place, value in logs.items():
                shifts[place].append(value - fmean(logs.values()))
    return [
        _Point(sentinel=math.log(session.sentinel_ns(sentinel) or 1.0), cases=median(shifts[place]))
        for place, session in enumerate(sessions)
        if place in shifts
    ]


def _log(session: StoredSession, case_id: str) -> float:
    return math.log(session.median_ns(case_id))


def _weight(points: Sequence[_Point]) -> float:
    """Return the weight of a sentinel; 0 where held-out sessions are no steadier by one."""
    with_weight = without = 0.0
    for place, held_out in enumerate(points):
        others = [*points[:place], *points[place + 1 :]]
        sentinel, cases = fmean(each.sentinel for each in others), fmean(each.cases for each in others)
        off = held_out.cases - cases
        without += off**2
        with_weight += (off - _ridge(others) * (held_out.sentinel - sentinel)) ** 2
    return _ridge(points) if with_weight < without else 0.0


def _ridge(points: Sequence[_Point]) -> float:
    mean_x, mean_y = fmean(each.sentinel for each in points), fmean(each.cases for each in points)
    centred = [(each.sentinel - mean_x, each.cases - mean_y) for each in points]
    squares, products = math.fsum(x * x for x, _ in centred), math.fsum(x * y for x, y in centred)
    if squares == 0.0:
        return 0.0
    left = math.fsum((y - products / squares * x) ** 2 for x, y in centred) / max(1, len(points) - 2)
    return products / (squares + left / _PRIOR_DEVIATION**2)
