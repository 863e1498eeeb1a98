"""Hypothesis' settings of hunts."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings

from perfsuite.experiments.shapes.profiles import hunt_settings, register_profile
from perfsuite.experiments.shapes.request import HUNT_BUDGETS


@pytest.mark.parametrize("name", HUNT_BUDGETS)
def test_a_profile_draws_its_shapes(name: str) -> None:
    """The number of examples is the profile's; nothing that measuring would trip over is left on."""
    try:
        register_profile(HUNT_BUDGETS[name])
        found = hunt_settings()
    finally:
        register_profile(HUNT_BUDGETS["default"])
    assert found.max_examples == HUNT_BUDGETS[name].n_examples
    assert (found.deadline, found.database, found.derandomize) == (None, None, False)
    assert set(found.suppress_health_check) == set(HealthCheck)
    assert {Phase.generate, Phase.target, Phase.shrink} <= set(found.phases)


def test_verbosity_is_what_hypothesis_was_asked_for() -> None:
    assert hunt_settings().verbosity == settings().verbosity
