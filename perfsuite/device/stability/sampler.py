"""Watches a device while something runs on it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from perfsuite.device.stability.clock_rates import Policy, find_policies, mean_mhz
from perfsuite.device.stability.power_sensors import NOTHING_READ, PowerSensor, find_power_sensors
from perfsuite.device.stability.rotation import Rotation, Source
from perfsuite.device.stability.thermal_zones import find_zones
from perfsuite.device.stability.throttling import Throttling, find_throttling, together

#: Samples a second, where nobody says otherwise.
DEFAULT_RATE_HZ = 2.0
#: Files of each kind that a sample reads while something runs, beside the power's.
MOST_READS = 3
#: More than a day at the default rate; what comes later has no samples, and so no energy.
_MOST_SAMPLES = 200_000
#: Longest to wait for a sample that has begun; a bus that hangs can block a read.
_LAST_SAMPLE_LIMIT_S = 5.0


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
    Those in between, each half second by default, read the power and, in turns, at most `MOST_READS` files each of
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

    def take_all(self) -> None:
        """Take one sample of everything."""
        for each in self._in_turns:
            each.read_all()
        self._take()

    def take(self) -> None:
        """Take one sample that reads little."""
        for each in self._in_turns:
            each.read_some(MOST_READS)
        self._take()

    def _take(self) -> None:
        throttling = together(self.throttling.told)
        before_ns = time.monotonic_ns()
        power = NOTHING_READ if self.power is None else self.power.read()
        self._taken.append(
            Sample(
                at_ns=(before_ns + time.monotonic_ns()) // 2,
                temperature_celsius=max((each for each in self.heats.told if each is not None), default=None),
                cpu_mhz=mean_mhz(self.rates.told, self.processors),
                is_throttled=throttling.is_throttled,
                n_throttle_events=throttling.n_events,
                power_watts=power.watts,
                counted_joules=power.counted_joules,
            )
        )


@contextmanager
def sampling(
    root: Path = Path("/"),
    *,
    zones: Sequence[str] = (),
    processors: Sequence[int] = (),
    rate_hz: float = DEFAULT_RATE_HZ,
) -> Iterator[Sampling]:
    """Take samples in a thread while the context lasts, with one at its beginning and one at its end.

    It belongs into the process that waits for the workers, not into one that is measured; the thread leaves the
    `processors` that are used to them.
    """
    sensors = find_power_sensors(root)
    policies, counted = find_policies(root, processors), find_zones(root, zones)
    found = Sampling(
        processors=tuple(processors),
        power=sensors[0] if sensors else None,
        rates=Rotation(sources=[Source(n_reads=1, read=partial(_rate, each)) for each in policies]),
        heats=Rotation(sources=[Source(n_reads=1, read=each.celsius) for each in counted]),
        throttling=Rotation(sources=find_throttling(root)),
    )
    has_ended = threading.Event()
    thread = threading.Thread(target=_sample, args=(found, has_ended, 1 / rate_hz), name="sampling", daemon=True)
    found.take_all()
    thread.start()
    try:
        yield found
    finally:
        has_ended.set()
        thread.join(_LAST_SAMPLE_LIMIT_S)
        if not thread.is_alive():
            found.take_all()


def _rate(policy: Policy) -> tuple[Policy, int | None]:
    return policy, policy.khz()


def _sample(found: Sampling, has_ended: threading.Event, period_s: float) -> None:
    _step_aside(found.processors)
    while not has_ended.wait(period_s) and len(found.samples) < _MOST_SAMPLES:
        found.take()


def _step_aside(processors: Sequence[int]) -> None:
    """Let this thread run on the processors that the run does not use, if there are any."""
    others = set(range(os.cpu_count() or 0)) - set(processors)
    if processors and others:
        with suppress(OSError):
            os.sched_setaffinity(0, others)
