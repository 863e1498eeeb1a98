"""What a sensor of power or energy gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

#: More than any device here draws; such a reading is none. So is 0 W, and less.
_MOST_WATTS = 2000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerReading:
    """One reading: a power now, or energy counted since some beginning; None is 'not measured'."""

    watts: float | None = None
    counted_joules: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether it says anything."""
        return self.watts is not None or self.counted_joules is not None


NOTHING_READ = PowerReading()


class PowerSensor(Protocol):
    """A sensor of power, or a counter of energy."""

    @property
    def name(self) -> str:
        """Which it is, such as ``ina3221 VDD_IN``."""

    @property
    def covers(self) -> str:
        """What is measured by it, and what is left out, in words."""

    def read(self) -> PowerReading:
        """Read it once."""


def sensible_watts(watts: float) -> float | None:
    """Return a power that a device can draw, None for another."""
    return watts if 0 < watts <= _MOST_WATTS else None
