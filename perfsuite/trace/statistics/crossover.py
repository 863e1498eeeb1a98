"""Processor against device by dimensions: from which size on an operator is worth offloading.

For each type of operator and phase both sides get a line, time over work (M x N x K x H), of least squares of relative
distances. Where

    a_cpu + b_cpu * w = a_device + b_device * w      w = (a_device - a_cpu) / (b_cpu - b_device) > 0

they cross: a device that takes longer to begin and less for each piece of work wins above w, and one of the other kind
below it. Without a crossing one side wins throughout. A crossing outside of the measured work is marked as such: a
policy that relies on it extrapolates.

*Source*: ProfInfer, insights: the GPU wins only for a range of dimensions, so offloading could be chosen by shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from perfsuite.records.engine_trace import EngineTrace
from perfsuite.records.events import Phase
from perfsuite.trace.statistics.operator_runs import operator_runs, operator_table
from perfsuite.trace.statistics.operator_statistics import (
    Dimensions,
    LineFit,
    OperatorType,
    fit_line,
    operator_statistics,
)


class Winner(str, Enum):
    """Which side is faster, as a policy would word it."""

    DEVICE_ABOVE = "device above"
    DEVICE_BELOW = "device below"
    DEVICE = "device"
    CPU = "cpu"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """One set of dimensions on both sides, medians, ns."""

    dimensions: Dimensions
    cpu_ns: float
    device_ns: float

    @property
    def speedup_ratio(self) -> float:
        """CPU over device: above 1 the device is faster."""
        return self.cpu_ns / self.device_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """One type of operator in one phase."""

    phase: Phase
    op: str
    type: str
    #: What both sides have, by work, ascending.
    sides: tuple[SideBySide, ...]
    cpu_line: LineFit | None
    device_line: LineFit | None
    winner: Winner
    #: M x N x K x H where the lines cross; None where they do not.
    work: float | None
    #: Whether that lies within what was measured.
    is_measured: bool | None


def crossover(cpu: EngineTrace, device: EngineTrace) -> tuple[Crossover, ...]:
    """Compare the operators that two traces share, one of the processor and one of a device."""
    ours, theirs = _types(cpu), _types(device)
    return tuple(_compared(key, ours[key], theirs[key]) for key in ours if key in theirs)


_Key = tuple[Phase, str, str]


def _types(trace: EngineTrace) -> Mapping[_Key, OperatorType]:
    found = operator_statistics(operator_runs(trace), operator_table(trace))
    return {(each.phase, each.op, each.type): each for each in found}


def _compared(key: _Key, cpu: OperatorType, device: OperatorType) -> Crossover:
    device_ns = {each.dimensions: each.median_ns for each in device.dimensions}
    sides = tuple(
        SideBySide(dimensions=each.dimensions, cpu_ns=each.median_ns, device_ns=device_ns[each.dimensions])
        for each in cpu.dimensions
        if device_ns.get(each.dimensions, 0.0) > 0
    )
    works = [each.dimensions.work for each in sides]
    cpu_line = fit_line(works, [each.cpu_ns for each in sides], is_relative=True)
    device_line = fit_line(works, [each.device_ns for each in sides], is_relative=True)
    winner, work = _winner(cpu_line, device_line, works)
    phase, op, type_name = key
    return Crossover(
        phase=phase,
        op=op,
        type=type_name,
        sides=sides,
        cpu_line=cpu_line,
        device_line=device_line,
        winner=winner,
        work=work,
        is_measured=None if work is None else works[0] <= work <= works[-1],
    )


def _winner(cpu: LineFit | None, device: LineFit | None, works: Sequence[int]) -> tuple[Winner, float | None]:
    if cpu is None or device is None:
        return Winner.UNKNOWN, None
    if cpu.slope != device.slope:
        work = (device.intercept - cpu.intercept) / (cpu.slope - device.slope)
        if work > 0:
            return (Winner.DEVICE_ABOVE if device.slope < cpu.slope else Winner.DEVICE_BELOW), work
    middle = works[len(works) // 2]
    return (Winner.DEVICE if device.at(middle) < cpu.at(middle) else Winner.CPU), None
