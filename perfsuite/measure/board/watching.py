"""What a board was like while something ran on it, beside the payload of what ran.

What must be read is found here, in a copy of the board's files, and named to its program. The looks that the program
took are then written into the copy one after the other, and each is sampled as if it were now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perfsuite.device.machine import Conditions
from perfsuite.device.stability.sampler import DEFAULT_RATE_HZ, MOST_READS, MOST_SAMPLES, Sampling, sampled
from perfsuite.measure.board.mirror import Mirror

#: Where a payload has the samples of the device that were taken beside it, and whether it was throttled meanwhile.
DEVICE_SAMPLES = "device_samples"
WAS_THROTTLED = "was_throttled"


def asked_looks(board: Mirror, conditions: Conditions) -> tuple[Sampling, dict[str, Any]]:
    """Return what samples will be made of, and what the program is asked to look at for them."""
    found = sampled(board.root, zones=conditions.thermal_zones, processors=conditions.processors)
    groups = [
        [board.paths(each.files) for each in rotation.sources]
        for rotation in (found.rates, found.heats, found.throttling)
    ]
    power = () if found.power is None else found.power.files
    return found, {
        "period_s": 1 / DEFAULT_RATE_HZ,
        "most_reads": MOST_READS,
        "most_looks": MOST_SAMPLES,
        "power": board.paths(power),
        "groups": groups,
    }


def replay(board: Mirror, found: Sampling, looks: Sequence[Mapping[str, Any]]) -> None:
    """Take the samples of looks: the first and the last are of everything. `ValueError` where they are none."""
    for place, look in enumerate(looks):
        for path, content in look["reads"]:
            board.write(path, content)
        take = found.take_all if place in (0, len(looks) - 1) else found.take
        take(int(look["at_ns"]))


def seen_beside(seen: Sampling) -> dict[str, Any]:
    """Return what payloads get of samples."""
    return {DEVICE_SAMPLES: [asdict(each) for each in seen.samples], WAS_THROTTLED: seen.was_throttled}


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What the samples beside a payload come to; None is 'not measured'."""

    least_cpu_mhz: float | None = None
    most_cpu_mhz: float | None = None
    #: Of the hottest zone that counts.
    most_celsius: float | None = None
    was_throttled: bool | None = None

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> Watched:
        """Reduce the samples of a payload; all is None where it has none."""
        samples: Sequence[Mapping[str, Any]] = payload.get(DEVICE_SAMPLES, ())
        rates_mhz, celsius = _known(samples, "cpu_mhz"), _known(samples, "temperature_celsius")
        return cls(
            least_cpu_mhz=min(rates_mhz, default=None),
            most_cpu_mhz=max(rates_mhz, default=None),
            most_celsius=max(celsius, default=None),
            was_throttled=payload.get(WAS_THROTTLED),
        )


def _known(samples: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [value for each in samples if (value := each[name]) is not None]
