"""What may explain why a run took longer than another and does not make them incomparable."""

from __future__ import annotations

import os

import psutil


def host_covariates() -> dict[str, float | None]:
    """Return the load, the clock and the temperature of this machine as they are now; None is 'not measured'."""
    return {
        "load_average": round(os.getloadavg()[0], 3),
        "cpu_mhz": _cpu_mhz(),
        "temperature_celsius": _temperature_celsius(),
    }


def _cpu_mhz() -> float | None:
    """Return the mean clock of the processors."""
    try:
        frequency = psutil.cpu_freq()
    except (OSError, NotImplementedError, AttributeError):
        return None
    return round(frequency.current, 1) if frequency and frequency.current else None


def _temperature_celsius() -> float | None:
    """Return the hottest sensor's reading; virtual machines have none."""
    try:
        sensors = psutil.sensors_temperatures()
    except (OSError, AttributeError):
        return None
    return max((each.current for readings in sensors.values() for each in readings), default=None)
