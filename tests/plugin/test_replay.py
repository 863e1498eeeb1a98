"""The clock that replays samples."""

from __future__ import annotations

import pytest

from perfsuite.plugin.replay import ReplayClock


def test_pairs_of_readings_are_apart_by_the_samples() -> None:
    """Round after round, the second reading is later than the first by the sample of that round, in s."""
    clock = ReplayClock([2_000, 5])
    rounds = [(clock(), clock()) for _ in range(2)]
    assert [after - before for before, after in rounds] == pytest.approx([2e-6, 5e-9])


def test_a_clock_that_has_no_samples_left_stands_still() -> None:
    """Beyond the last sample time does not go on."""
    clock = ReplayClock([7])
    assert len({clock(), clock()}) == 2
    assert clock() == clock() == pytest.approx(7e-9)
