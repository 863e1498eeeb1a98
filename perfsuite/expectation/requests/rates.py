"""What a device gives a forecast: peak rates, the share of them that is reached, the cost of a dispatch, its power."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from perfsuite.errors import PerfsuiteError

#: Operations a second in one TOPS.
OPS_PER_TOPS = 1e12
#: Bytes a second in one GB/s: bandwidths are decimal, unlike sizes.
BYTES_PER_GB = 1e9
#: Seconds in one microsecond.
S_PER_US = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """The share of the peaks that an operator reaches, each above 0 and up to 1."""

    compute_ratio: float = 1.0
    memory_ratio: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        _check_share("--compute-efficiency", self.compute_ratio)
        _check_share("--memory-efficiency", self.memory_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRates:
    """One device as LIFE's formulas see it; a value that no device has is a PerfsuiteError by its option's name."""

    #: Operations a second, of which a multiply-add is two.
    peak_flops_per_s: float
    bandwidth_bytes_per_s: float
    #: What every operator reaches.
    efficiency: Efficiency = field(default_factory=Efficiency)
    #: What issuing one operator adds.
    dispatch_s: float = 0.0
    #: Power while it computes; None where it is not known.
    power_w: float | None = None

    def __post_init__(self) -> None:
        """Refuse rates, times and powers that no device has."""
        _check_positive("--tops", self.peak_flops_per_s / OPS_PER_TOPS, "TOPS")
        _check_positive("--bandwidth", self.bandwidth_bytes_per_s / BYTES_PER_GB, "GB/s")
        if not 0.0 <= self.dispatch_s < math.inf:
            _refuse("--dispatch-us", self.dispatch_s / S_PER_US, "microseconds, 0 or more")
        if self.power_w is not None:
            _check_positive("--power-w", self.power_w, "watts")


def rates_of(
    *,
    tops: float,
    bandwidth_gb_per_s: float,
    compute_efficiency: float = 1.0,
    memory_efficiency: float = 1.0,
    dispatch_us: float = 0.0,
    power_w: float | None = None,
) -> DeviceRates:
    """Build rates from the units of data sheets: TOPS of 1e12 operations a second, GB/s of 1e9 bytes a second."""
    return DeviceRates(
        peak_flops_per_s=tops * OPS_PER_TOPS,
        bandwidth_bytes_per_s=bandwidth_gb_per_s * BYTES_PER_GB,
        efficiency=Efficiency(compute_ratio=compute_efficiency, memory_ratio=memory_efficiency),
        dispatch_s=dispatch_us * S_PER_US,
        power_w=power_w,
    )


def _check_positive(option: str, value: float, unit: str) -> None:
    if not 0.0 < value < math.inf:
        _refuse(option, value, f"{unit} above 0")


def _check_share(option: str, value: float) -> None:
    if not 0.0 < value <= 1.0:
        _refuse(option, value, "a share above 0 and up to 1")


def _refuse(option: str, value: float, accepted: str) -> None:
    raise PerfsuiteError(f"{option}={value:g}: expected {accepted}")
