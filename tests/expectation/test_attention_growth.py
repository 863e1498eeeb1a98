"""The expected growth of attention."""

from __future__ import annotations

import pytest

from perfsuite.expectation.attention_growth import attended_positions, growth_expectation, has_growth
from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.ceilings import Bandwidth, Ceilings

from ..catalogue_workloads import catalogue_workload


def workload(name: str = "smollm2-135m-l2-q8_0", scenario: str = "p64-g600", **settings: object) -> LlamaWorkload:
    """Return a workload whose weights need not be there."""
    return catalogue_workload(name, scenario, **settings)  # type: ignore[arg-type]


def ceilings(flops_per_s: float, bytes_per_s: float) -> Ceilings:
    """Return a device of two rates."""
    uses = dict.fromkeys(("read_bytes_per_s", "copy_bytes_per_s", "triad_bytes_per_s"), bytes_per_s)
    peaks = dict.fromkeys(("fp32_flops_per_s", "int8_flops_per_s", "f16_flops_per_s"), flops_per_s)
    bandwidth = Bandwidth(working_set_bytes=1 << 30, **uses)
    return Ceilings(n_threads=2, bandwidths=(bandwidth,), dispatch_ns=1_000, **peaks)


def test_a_position_costs_its_keys_and_values() -> None:
    """Two layers read 3 heads of 64 F16 keys and values, and an F16 mask, and 9 heads multiply both."""
    found = growth_expectation(workload())
    assert found.bytes_per_position == 2 * (3 * 64 * 2 * 2 + 2)
    assert found.flops_per_position == 2 * 9 * (2 * (64 + 64) + 6)
    quantised = growth_expectation(workload(type_k="q8_0", type_v="q8_0"))
    assert quantised.bytes_per_position == pytest.approx(2 * (3 * 64 * 2 * 34 / 32 + 2))


def test_the_slower_of_memory_and_arithmetic_decides() -> None:
    """On a device of slow memory the bytes are the slope, on one of slow arithmetic the FLOPs."""
    found = growth_expectation(workload())
    assert found.slope_ns(ceilings(1e15, 1e9)) == pytest.approx(found.bytes_per_position)
    assert found.slope_ns(ceilings(1e9, 1e15)) == pytest.approx(found.flops_per_position)


@pytest.mark.parametrize(
    ("n_used", "positions"), [(65, 65), (256, 256), (257, 512), (300, 512), (512, 512), (513, 768)]
)
def test_the_busiest_thread_is_what_a_step_waits_for(n_used: int, positions: int) -> None:
    """From 512 padded positions on a thread sees half of them, in use or not, so the step takes as long as both."""
    assert attended_positions(workload(), n_used, 2) == positions
    assert attended_positions(workload(flash_attn=False), n_used, 2) == -(-n_used // 256) * 256


@pytest.mark.parametrize(
    ("name", "scenario", "grows"),
    [("smollm2-135m-q8_0", "siso", True), ("smollm2-135m-q8_0", "p64-g1", False), ("gemma-2-2b-q8_0", "siso", False)],
)
def test_growth_needs_steps_and_a_whole_cache(name: str, scenario: str, grows: bool) -> None:
    """One step has no growth, and a sliding window stops it."""
    assert has_growth(workload(name, scenario)) is grows
