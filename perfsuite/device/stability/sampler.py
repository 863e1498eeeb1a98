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
from perfsuite.device.stability.power_reading import NOTHING_READ, PowerSensor
from perfsuite.device.stability.power_sensors import find_power_sensors
from perfsuite.device.stability.rotation import Rotation, Source
from perfsuite.device.stability.thermal_zones import Zone, find_zones
from perfsuite.device.stability.throttling import Hint, ThrottlingSources, all_hints, find_throttling

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
    zones: tuple[Zone, ...]
    policies: tuple[Policy, ...]
    throttling: ThrottlingSources
    power: PowerSensor | None
    _rates: Rotation[tuple[str, int | None]] = field(init=False)
    _heats: Rotation[float | None] = field(init=False)
    _hints: Rotation[Hint] = field(init=False)
    _taken: list[Sample] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Arrange what is read in turns."""
        self._rates = Rotation(sources=[Source(n_reads=1, read=partial(_rate, each)) for each in self.policies])
        self._heats = Rotation(sources=[Source(n_reads=1, read=each.celsius) for each in self.zones])
        self._hints = Rotation(sources=self.throttling.sources)

    @property
    def _in_turns(self) -> tuple[Rotation[Any], ...]:
        return self._rates, self._heats, self._hints

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All samples, in the order of time."""
        return tuple(self._taken)

    @property
    def n_samples(self) -> int:
        """How many there are."""
        return len(self._taken)

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
        rates = [(name, rate) for name, rate in self._rates.told if rate is not None]
        throttling = all_hints(self._hints.told)
        before_ns = time.monotonic_ns()
        power = NOTHING_READ if self.power is None else self.power.read()
        self._taken.append(
            Sample(
                at_ns=(before_ns + time.monotonic_ns()) // 2,
                temperature_celsius=max((each for each in self._heats.told if each is not None), default=None),
                cpu_mhz=mean_mhz(self.policies, rates, self.processors),
                is_throttled=throttling.is_throttled,
                n_throttle_events=throttling.n_events,
                power_watts=power.watts,
                counted_joules=power.counted_joules,
            )
        )


def _rate(policy: Policy) -> tuple[str, int | None]:
    return policy.folder.name, policy.khz()


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
    found = Sampling(
        processors=tuple(processors),
        zones=find_zones(root, zones),
        policies=find_policies(root, processors),
        throttling=find_throttling(root),
        power=sensors[0] if sensors else None,
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


def _sample(found: Sampling, has_ended: threading.Event, period_s: float) -> None:
    _step_aside(found.processors)
    while not has_ended.wait(period_s) and found.n_samples < _MOST_SAMPLES:
        found.take()


def _step_aside(processors: Sequence[int]) -> None:
    """Let this thread run on the processors that the run does not use, if there are any."""
    others = set(range(os.cpu_count() or 0)) - set(processors)
    if processors and others:
        with suppress(OSError):
            os.sched_setaffinity(0, others)
