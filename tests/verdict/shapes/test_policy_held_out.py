"""Sizes at which a row is checked."""

from __future__ import annotations

import pytest

from perfsuite.verdict.shapes.policy_held_out import held_out_sizes

from ...synthetic_shape_policy import CPU, FIBONACCI, policy_row


def test_sizes_lie_between_those_that_were_measured() -> None:
    """They are spread over the row from the first gap to the last, and none was measured."""
    found = held_out_sizes(policy_row(1, 377, CPU), FIBONACCI)
    assert found == (4, 6, 10, 17, 27, 43, 70, 113, 183, 296)


def test_of_many_gaps_some_are_looked_at() -> None:
    """No more than ten sizes are measured, from the first gap to the last."""
    sizes = tuple(range(10, 410, 10))
    found = held_out_sizes(policy_row(10, 400, CPU), sizes)
    assert (len(found), found[0], found[-1]) == (10, 14, 395)


def test_few_gaps_get_several_sizes_each() -> None:
    """Two gaps have three sizes each, at quarters."""
    found = held_out_sizes(policy_row(100, 400, CPU, measured_least=100), (100, 200, 400))
    assert found == (119, 141, 168, 238, 283, 336)


def test_a_row_of_one_measured_size_is_checked_towards_its_ends() -> None:
    """What was interpolated on both sides is all that there is."""
    found = held_out_sizes(policy_row(43, 113, CPU, measured_least=70, measured_most=70), (10, 70, 400))
    assert found == (49, 55, 62, 79, 89, 100)


@pytest.mark.parametrize("most", [1, 3])
def test_a_row_without_other_sizes_has_none(most: int) -> None:
    """Nothing lies between 1, 2 and 3."""
    assert held_out_sizes(policy_row(1, most, CPU), (1, 2, 3)) == ()


def test_sizes_are_whole_steps() -> None:
    """Where rows are of blocks of 32, so are the sizes."""
    found = held_out_sizes(policy_row(32, 512, CPU), (32, 128, 512), step=32)
    assert found
    assert all(size % 32 == 0 and size not in (32, 128, 512) for size in found)
