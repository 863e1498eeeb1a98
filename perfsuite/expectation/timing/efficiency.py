"""Efficiency: how much of a device's peaks an operator reaches, by its kind, type and shape."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.expectation.ceilings import Ceilings
from perfsuite.expectation.timing.features import shape_cost
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.expectation.timing.operator_times import OperatorTimes
from perfsuite.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """What an operator reaches of the peaks of arithmetic and bandwidth; each a ratio, LIFE's ec and em."""

    shape: OperatorShape
    time_ns: float
    flops_per_s: float
    bytes_per_s: float
    compute_ratio: float
    memory_ratio: float
    #: Standard deviation of the logarithm of the time, and so of both ratios.
    spread_ratio: float


def efficiency(shape: OperatorShape, times: OperatorTimes, ceilings: Ceilings) -> Efficiency:
    """Compare the forecast time of an operator with the multiply-add peak and with the bandwidth of memory.

    ``ec = FLOPs / (time x peak)``, ``em = bytes / (time x bandwidth)``. Products of 8-bit integers may reach an ec
    above 1, for the peak is that of 32-bit floats; an em above 1 says that a cache helped.
    """
    time, cost = times.time(shape), shape_cost(shape)
    seconds = time.time_ns / NS_PER_S
    bandwidth = ceilings.bandwidths[-1].read_bytes_per_s
    return Efficiency(
        shape=shape,
        time_ns=time.time_ns,
        flops_per_s=cost.flops / seconds,
        bytes_per_s=cost.moved_bytes / seconds,
        compute_ratio=cost.flops / seconds / ceilings.fp32_flops_per_s,
        memory_ratio=cost.moved_bytes / seconds / bandwidth,
        spread_ratio=time.spread_ratio,
    )
