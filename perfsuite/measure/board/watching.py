"""What a board was like while something ran on it, beside the payload of what ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perfsuite.device.stability.sampler import Sampling

#: Where a payload has the samples of the device that were taken beside it, and whether it was throttled meanwhile.
DEVICE_SAMPLES = "device_samples"
WAS_THROTTLED = "was_throttled"


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
