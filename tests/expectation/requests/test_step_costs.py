"""The decode steps of a generation."""

from __future__ import annotations

import numpy as np

from perfsuite.expectation.op_cost import OpCost, PassCost
from perfsuite.expectation.requests.step_costs import expanded

SMALL = PassCost(by_operator={"gemm": OpCost(flops=10, read_bytes=4)})
LARGE = PassCost(
    by_operator={"gemm": OpCost(flops=30, read_bytes=5), "copy": OpCost(written_bytes=7, kv_written_bytes=2)}
)


def test_steps_are_passes_by_their_place() -> None:
    """Each step is the pass that was named for it, whatever of it the others lack."""
    steps = expanded([SMALL, LARGE], np.array([0, 0, 1]))
    assert steps.n_steps == 3
    assert steps.at(1).total == SMALL.total
    assert steps.at(2).total == LARGE.total
    assert steps.at(-1).by_operator == LARGE.by_operator
    assert steps.total.flops.tolist() == [10, 10, 30]
    assert steps.total.n_dispatches.tolist() == [1, 1, 2]


def test_a_step_and_their_mean_are_in_plain_integers() -> None:
    """(10 + 10 + 30) / 3 operations are 17, (4 + 4 + 5) / 3 bytes are 4; JSON has Python's integers, not NumPy's."""
    steps = expanded([SMALL, LARGE], np.array([0, 0, 1]))
    mean, first = steps.mean().total, steps.at(0).total
    assert (mean.flops, mean.read_bytes) == (17, 4)
    assert {type(each) for each in (mean.flops, first.flops, first.n_dispatches)} == {int}
