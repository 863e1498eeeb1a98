"""Lengths of time as people write them."""

from __future__ import annotations

import pytest

from perfsuite.device.waits import length_s


@pytest.mark.parametrize(("told", "wanted_s"), [("0", 0), ("90s", 90), ("1.5m", 90), ("2h", 7200), ("7", 7)])
def test_a_length_has_a_unit(told: str, wanted_s: float) -> None:
    """Without one it is in seconds."""
    assert length_s(told) == wanted_s


@pytest.mark.parametrize("told", ["", "-1", "1d", "inf", "nan", "1h30m", "٣s", "1e3", " 1s", "9" * 400])
def test_what_is_no_length_is_none(told: str) -> None:
    """Nothing is guessed, and nothing is without an end."""
    assert length_s(told) is None
