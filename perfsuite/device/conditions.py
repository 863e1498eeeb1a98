"""How a device must be while it is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a run asks of a device before and while it is measured: ``[conditions]`` of its profile.

    All fields are plain, so that they can be sent to the device.
    """

    #: Processors that the workers may use; () leaves all.
    processors: tuple[int, ...] = ()
    #: Frequency governor of the processors, and of the GPU; None leaves what is set.
    governor: str | None = None
    gpu_governor: str | None = None
    #: A run begins no hotter than this; None asks for nothing.
    start_below_celsius: float | None = None
    #: Longest to wait for that.
    cooling_limit_s: float = 300.0
    #: Types of thermal zones that count, as ``/sys/class/thermal/thermal_zone*/type`` has them; () counts all.
    thermal_zones: tuple[str, ...] = ()
    #: Least charge of a battery that is not being charged; None asks for nothing.
    least_battery_ratio: float | None = None


NO_CONDITIONS = Conditions()
