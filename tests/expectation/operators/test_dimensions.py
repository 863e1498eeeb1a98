"""Refusals of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.operators.dimensions import check_count, check_positive


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: check_positive(m=0), "m is 0, expected a positive integer"),
        (lambda: check_positive(k=1, n=-4), "n is -4, expected a positive integer"),
        (lambda: check_positive(m=1.5), "m is 1.5, expected a positive integer"),
        (lambda: check_positive(m=True), "m is True, expected a positive integer"),
        (lambda: check_count(n_past=-1), "n_past is -1, expected an integer of 0 or more"),
    ],
)
def test_a_dimension_out_of_range_is_named(check: Callable[..., Any], message: str) -> None:
    """The error has the field, the value and what is accepted."""
    with pytest.raises(ArchitectureError) as caught:
        check()
    assert str(caught.value) == message


def test_what_is_in_range_passes() -> None:
    """The least and the most that are accepted raise nothing."""
    check_positive(m=1)
    check_count(n_past=0)
