"""What a power can be."""

from __future__ import annotations

import pytest

from perfsuite.device.stability.power_reading import PowerReading, sensible_watts


@pytest.mark.parametrize("watts", [0.0, -3.2, 2001.0, float("inf"), float("nan")])
def test_a_power_that_cannot_be_is_none(watts: float) -> None:
    """A device that runs draws something, and no device here draws kilowatts."""
    assert sensible_watts(watts) is None


def test_either_value_makes_a_reading() -> None:
    """A counter has no power, a power no counter."""
    assert PowerReading(watts=1.0).is_known
    assert PowerReading(counted_joules=0.0).is_known
    assert not PowerReading().is_known
