"""How long hunts may generate."""

from __future__ import annotations

import pytest

from perfsuite.experiments.shapes.budget import HUNT_BUDGETS, TimeShares
from perfsuite.experiments.shapes.shape_design import SHAPE_DESIGNS


def test_profiles_have_the_names_of_designs() -> None:
    """How many shapes and how much of each is chosen by one name; the quick one takes a minute."""
    assert set(HUNT_BUDGETS) == set(SHAPE_DESIGNS)
    assert HUNT_BUDGETS["quick"].limit_s == 60.0
    assert HUNT_BUDGETS["default"].told == "500 shapes a hunt, 10 min for all"


def test_what_a_hunt_leaves_goes_to_those_that_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 s for three, the first may take 20; it took 10, so that the second may take 25; shrinking counts not."""
    now = [100.0]
    monkeypatch.setattr("perfsuite.experiments.shapes.budget.time.monotonic", lambda: now[0])
    shares = TimeShares(left_s=60.0, n_left=3)
    assert shares.start() == 120.0
    now[0] = 110.0
    shares.finish()
    assert shares.start() == 135.0
    now[0] = 210.0
    shares.finish()
    assert shares.start() == 235.0
