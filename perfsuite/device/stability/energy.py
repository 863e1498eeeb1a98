"""Energy from samples of power, or of a counter of energy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from perfsuite.device.stability.sampler import Sample

#: Furthest that two neighbouring samples may be apart: three periods of the default rate.
MOST_GAP_NS = 1_500_000_000
#: So many samples must lie within an interval: with fewer its power is that of what came before and after.
LEAST_WITHIN = 2


def energy_joules(samples: Sequence[Sample], start_ns: int, end_ns: int) -> float | None:
    """Return the energy between two moments of CLOCK_MONOTONIC, J; None where the samples do not cover them.

    They cover an interval with one sample at its start or before, one at its end or after, `LEAST_WITHIN` within it,
    and no two neighbours further apart than `MOST_GAP_NS`; samples without a reading count not. At 2 samples a second
    an interval has to be about a second long.

    A counter of energy is read off between its samples: E = C(end) - C(start), C linear in between. A power is
    integrated by trapezoids, P linear in between.
    """
    counted = [(each.at_ns, each.counted_joules) for each in samples if each.counted_joules is not None]
    if counted:
        points = _covering(counted, start_ns, end_ns)
        return None if points is None else _at(points, end_ns) - _at(points, start_ns)
    powers = [(each.at_ns, each.power_watts) for each in samples if each.power_watts is not None]
    covering = _covering(powers, start_ns, end_ns)
    return None if covering is None else _integral(covering, start_ns, end_ns)


def joules_per_token(samples: Sequence[Sample], spans: Sequence[tuple[int, int]], n_tokens: int) -> float | None:
    """Return the energy over a phase's (start, end) spans, divided by the tokens that all of them made.

    None where a span is not covered, or there is none: a mean over some of them would be of other tokens.
    """
    energies = [energy_joules(samples, start_ns, end_ns) for start_ns, end_ns in spans]
    known = [each for each in energies if each is not None]
    if not known or len(known) < len(energies) or n_tokens <= 0:
        return None
    return sum(known) / n_tokens


def _covering(points: Sequence[tuple[int, float]], start_ns: int, end_ns: int) -> list[tuple[int, float]] | None:
    """Return the points from the last at or before the start to the first at or after the end, if they cover all."""
    first = max((index for index, (at_ns, _) in enumerate(points) if at_ns <= start_ns), default=None)
    last = min((index for index, (at_ns, _) in enumerate(points) if at_ns >= end_ns), default=None)
    if first is None or last is None or start_ns >= end_ns:
        return None
    chosen = list(points[first : last + 1])
    n_within = sum(start_ns <= at_ns <= end_ns for at_ns, _ in chosen)
    has_gap = any(after - before > MOST_GAP_NS for (before, _), (after, _) in pairwise(chosen))
    return None if has_gap or n_within < LEAST_WITHIN else chosen


def _at(points: Sequence[tuple[int, float]], at_ns: int) -> float:
    """Return the value at a moment, linear between its neighbours."""
    for (before_ns, before), (after_ns, after) in pairwise(points):
        if before_ns <= at_ns <= after_ns and after_ns > before_ns:
            return before + (after - before) * (at_ns - before_ns) / (after_ns - before_ns)
    return points[-1][1]


def _integral(points: Sequence[tuple[int, float]], start_ns: int, end_ns: int) -> float:
    inner = [(at_ns, watts) for at_ns, watts in points if start_ns < at_ns < end_ns]
    edged = [(start_ns, _at(points, start_ns)), *inner, (end_ns, _at(points, end_ns))]
    return sum(
        (watts + next_watts) / 2 * (next_ns - at_ns) / 1e9 for (at_ns, watts), (next_ns, next_watts) in pairwise(edged)
    )
