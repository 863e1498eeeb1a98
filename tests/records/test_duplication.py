"""Ground truths by duplication, and how many duplicates there are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perfsuite.records.duplication import (
    N_LEAST,
    duplicates_wanted,
    duplicates_within,
)

from ..synthetic_fidelity import duplication


def test_times_are_per_launch_and_duplicate() -> None:
    """G is the added host time by the duplicates; all 1 + n executed; without rounds nothing is known."""
    found = duplication()
    assert (found.ground_truths_ns, found.ground_truth_ns) == ((202_000, 201_000, 204_000), 202_000)
    assert (found.execution_ns, found.occupied_ns, found.base_execution_ns) == (200_000, 201_000, 203_000)
    found = duplication(rounds=(), n_duplicates=0, problem="an argument cannot be copied")
    assert found.ground_truth_ns is found.execution_ns is found.occupied_ns is found.base_execution_ns is None


@given(st.floats(0, 1e10), st.integers(1, 20), st.integers(1, 10**11))
def test_the_budget_bounds_the_rounds(kernel_ns: float, n_rounds: int, budget_ns: int) -> None:
    """The rounds fit into the budget, or there are no more duplicates than the least; never more than are wanted."""
    n = duplicates_within(kernel_ns, n_rounds, budget_ns)
    assert N_LEAST <= n <= duplicates_wanted(kernel_ns)
    assert n == N_LEAST or n * n_rounds * kernel_ns <= budget_ns
