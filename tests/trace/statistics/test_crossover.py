"""Processor against device."""

from __future__ import annotations

import pytest

from perfsuite.records.engine_trace import EngineTrace, EventKind, TraceRecorder
from perfsuite.testing.engine_traces import engine_trace, event
from perfsuite.trace.statistics.crossover import Crossover, Winner, crossover

from ...synthetic_statistics import law_trace, product

SIZES = (64, 128, 256, 512, 1024)
GRAPH = tuple(product(f"ffn_{size}", 64, size) for size in SIZES)


def cpu_trace(constant_ns: int, ns_per_row: int) -> EngineTrace:
    return law_trace(GRAPH, 5, lambda _step, position, _thread: constant_ns + ns_per_row * SIZES[position])


def device_trace(constant_ns: int, ns_per_row: int) -> EngineTrace:
    commands = []
    for step in range(5):
        for position, size in enumerate(SIZES):
            half_ns = (constant_ns + ns_per_row * size) // 2
            for part in (0, 1):
                at_ns = step * 1_000_000 + position * 100_000 + part * 40_000
                place = {"iteration": step, "evaluation": step, "graph": 0, "node": position}
                commands.append(event(EventKind.KERNEL, at_ns, at_ns + half_ns, value=0, **place))
    return engine_trace(commands, graphs=(GRAPH,), kernels=("gemv",), recorder=TraceRecorder.OPENCL)


def compared(cpu: tuple[int, int], device: tuple[int, int]) -> Crossover:
    (found,) = crossover(cpu_trace(*cpu), device_trace(*device))
    return found


def test_the_crossing_is_where_the_lines_meet() -> None:
    found = compared((2_000, 60), (12_000, 20))
    assert found.winner is Winner.DEVICE_ABOVE
    assert found.work == pytest.approx(250 * 64)
    assert found.is_measured
    faster = [each.dimensions.m for each in found.sides if each.speedup_ratio > 1]
    assert faster == [256, 512, 1024]
    found = compared((12_000, 20), (2_000, 60))
    assert (found.winner, found.work) == (Winner.DEVICE_BELOW, pytest.approx(250 * 64))
    found = compared((2_000, 60), (102_000, 20))
    assert found.work == pytest.approx(2_500 * 64)
    assert found.is_measured is False


@pytest.mark.parametrize(
    ("device", "winner"), [((1_000, 20), Winner.DEVICE), ((20_000, 80), Winner.CPU)], ids=["device", "cpu"]
)
def test_one_side_may_win_throughout(device: tuple[int, int], winner: Winner) -> None:
    found = compared((2_000, 60), device)
    assert (found.winner, found.work, found.is_measured) == (winner, None, None)
