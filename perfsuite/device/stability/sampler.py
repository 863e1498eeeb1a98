"""Watches a device while something runs on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from perfsuite.device.stability.power_sensors import NOTHING_READ, PowerSensor, find_power_sensors
from perfsuite.device.stability.small_files import Rotation, Source
from perfsuite.device.stability.thermal_zones import find_zones
from perfsuite.device.stability.throttling import Policy, Throttling, find_policies, find_throttling, mean_mhz, together

#: Samples a second, where nobody says otherwise.
DEFAULT_RATE_HZ = 2.0
#: Files of each kind that a sample reads while something runs, beside the power's.
MOST_READS = 3
#: More than a day at the default rate; what comes later has no samples, and so no energy.
MOST_SAMPLES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at the device; None is 'not measured'."""

    #: CLOCK_MONOTONIC, at the reading of the power.
    at_ns: int
    #: Of the hottest zone that counts, each as it was read last.
    temperature_celsius: float | None
    #: The mean over the processors used, each group as it was read last.
    cpu_mhz: float | None
    is_throttled: bool | None
    n_throttle_events: int | None
    power_watts: float | None
    #: Since the first sample, where the sensor counts energy.
    counted_joules: float | None


@dataclass(slots=True, kw_only=True)
class Sampling:
    """The samples of a run, which grow until the context has ended.

    The first and the last sample, outside of what runs, look at everything: about 30 files on a board of eight cores.
    Those in between, each half second by default, read the power and, in turn, at most `MOST_READS` files each of
    clocks, zones and throttling: what is not read is as it was read last. Such a board is seen whole in three seconds.
    """

    processors: tuple[int, ...]
    power: PowerSensor | None
    rates: Rotation[tuple[Policy, int | None]]
    heats: Rotation[float | None]
    throttling: Rotation[Throttling]
    _taken: list[Sample] = field(default_factory=list)

    @property
    def _in_turns(self) -> tuple[Rotation[Any], ...]:
        return self.rates, self.heats, self.throttling

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All samples, in the order of time."""
        return tuple(self._taken)

    @property
    def was_throttled(self) -> bool | None:
        """Whether any sample was, or the counters of throttling have grown; None where nothing tells."""
        taken = self.samples
        told = [each.is_throttled for each in taken if each.is_throttled is not None]
        counts = [each.n_throttle_events for each in taken if each.n_throttle_events is not None]
        if not told and not counts:
            return None
        return any(told) or (len(counts) > 1 and counts[-1] > counts[0])

    def take_all(self, at_ns: int | None = None) -> None:
        """Take one sample of everything; at a moment of before, where the files hold what was read then."""
        for each in self._in_turns:
            each.read_all()
        self._take(at_ns)

    def take(self, at_ns: int | None = None) -> None:
        """Take one sample that reads little; as `take_all`."""
        for each in self._in_turns:
            each.read_some(MOST_READS)
        self._take(at_ns)

    def _take(self, at_ns: int | None) -> None:
        throttling = together(self.throttling.told)
        before_ns = time.monotonic_ns()
        power = NOTHING_READ if self.power is None else self.power.read()
        self._taken.append(
            Sample(
                at_ns=(before_ns + time.monotonic_ns()) // 2 if at_ns is None else at_ns,
                temperature_celsius=max((each for each in self.heats.told if each is not None), default=None),
                cpu_mhz=mean_mhz(self.rates.told, self.processors),
                is_throttled=throttling.is_throttled,
                n_throttle_events=throttling.n_events,
                power_watts=power.watts,
                counted_joules=power.counted_joules,
            )
        )


def sampled(root: Path, *, zones: Sequence[str] = (), processors: Sequence[int] = ()) -> Sampling:
    """Find what samples are taken of; none is taken yet."""
    sensors = find_power_sensors(root)
    policies, counted = find_policies(root, processors), find_zones(root, zones)
    return Sampling(
        processors=tuple(processors),
        power=sensors[0] if sensors else None,
        rates=Rotation(sources=[Source(files=(each.rate_file,), read=partial(_rate, each)) for each in policies]),
        heats=Rotation(sources=[Source(files=(each.path,), read=each.celsius) for each in counted]),
        throttling=Rotation(sources=find_throttling(root)),
    )


def _rate(policy: Policy) -> tuple[Policy, int | None]:
    return policy, policy.khz()


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
