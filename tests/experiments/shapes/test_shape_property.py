"""What verdicts on shapes say."""

from __future__ import annotations

from perfsuite.experiments.shapes.shape_property import WRONG
from perfsuite.records.outcome import Outcome


def test_a_wrong_output_fails_before_it_is_slow() -> None:
    """It takes precedence over the failing outcomes that say slow."""
    order = list(Outcome)
    assert WRONG.fails
    assert all(order.index(WRONG) < order.index(slow) for slow in (Outcome.REGRESSED, Outcome.SLOW))
