"""What may explain why a run took longer than another and does not make them incomparable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perfsuite.device.stability.state import DeviceState, read_state


def host_covariates(
    root: Path = Path("/"), *, zones: Sequence[str] = (), processors: Sequence[int] = ()
) -> dict[str, float | None]:
    """Return the load, the clock and the temperature of this machine as they are now; None is 'not measured'."""
    state = read_state(root, zones=zones, processors=processors, with_power=False)
    return {
        "load_average": state.load_average,
        "cpu_mhz": state.cpu_mhz,
        "temperature_celsius": state.temperature_celsius,
    }


def device_covariates(state: DeviceState) -> dict[str, float | None]:
    """Return those of `host_covariates`, and whether it is ``throttled`` (1 or 0), its battery and its power."""
    return {
        "load_average": state.load_average,
        "cpu_mhz": state.cpu_mhz,
        "temperature_celsius": state.temperature_celsius,
        "throttled": None if state.is_throttled is None else float(state.is_throttled),
        "battery_ratio": state.battery_ratio,
        "power_watts": state.power_watts,
    }
