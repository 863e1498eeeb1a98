"""The comparison of the two runners of OpenCL kernels."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS

from .loaded_tool import loaded_tool


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """Return the tool as a module."""
    return loaded_tool("kernel_pairs")


def payload(lengths_ns: list[int], others_ratio: float = 0.0) -> dict[str, Any]:
    """Return what a process of one kernel has measured."""
    starts = [1_000_000 * place for place in range(1, len(lengths_ns) + 1)]
    ends = [start + length for start, length in zip(starts, lengths_ns, strict=True)]
    record = KernelRecord(
        case_id="kernel/a",
        error_norm=0.0,
        tolerance=1.0,
        queued_ns=starts,
        submit_ns=starts,
        start_ns=starts,
        end_ns=ends,
    )
    return {"kernels": [record.to_plain()], "contention": {"others_ratio": others_ratio}}


def test_a_planted_difference_is_found(tool: ModuleType) -> None:
    """A kernel that takes 2 % longer natively is reported so, with an interval around it."""
    chance = random.Random(5)
    pairs = []
    for _ in range(12):
        base = [chance.randint(99_000, 101_000) for _ in range(9)]
        slower = [round(chance.randint(99_000, 101_000) * 1.02) for _ in base]
        pairs.append(tuple(tool.sample_of(payload(side)) for side in (base, slower)))
    (found,) = tool.differences(pairs, 0.05)
    assert found.ratio == pytest.approx(1.02, rel=5e-3)
    assert 1.0 < found.lower_ratio <= found.ratio <= found.upper_ratio < 1.04
    assert tool.table([found]).splitlines()[1].startswith("a ")


def test_too_few_pairs_have_no_interval(tool: ModuleType) -> None:
    """Two pairs give a ratio, and no bounds."""
    sample = tool.sample_of(payload([100, 100]))
    (found,) = tool.differences([(sample, sample)] * 2, 0.05)
    assert (found.ratio, found.lower_ratio, found.upper_ratio) == (1.0, None, None)
    assert "too few pairs (2)" in tool.table([found])


def test_a_kernel_without_times_is_an_error(tool: ModuleType) -> None:
    """The kernel is named."""
    with pytest.raises(MeasurementError, match=r"^kernel/a: .* none of 2 launches has times that can be right"):
        tool.sample_of(payload([0, 0]))


def test_half_of_the_pairs_begin_natively(tool: ModuleType) -> None:
    """The order is drawn, and neither side is first more often; each side's samples are its own."""
    assert {sum(tool.drawn_orders(12, random.Random(seed))) for seed in range(9)} == {6}
    both = (lambda: payload([100]), lambda: payload([200]))
    pairs = tool.measured(both, [True, False])
    assert [(python.times_ns["kernel/a"], native.times_ns["kernel/a"]) for python, native in pairs] == [(100, 200)] * 2


def test_a_busy_machine_is_told(tool: ModuleType) -> None:
    """Where others had more than a twentieth of the processors, the figures say so."""
    quiet, busy = (tool.sample_of(payload([100], ratio)) for ratio in (0.01, 0.2))
    assert tool.neighbours([(quiet, quiet)]) == "others had 1.0 % of the processors (median process)"
    assert tool.neighbours([(busy, busy)]).endswith("busy machine, measure again")


def test_the_usual_kernels_are_of_the_catalogue(tool: ModuleType) -> None:
    """Each of them is a standard case."""
    assert set(tool._USUAL) <= {case.case_id for case in STANDARD_KERNELS}
