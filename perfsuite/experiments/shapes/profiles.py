"""Hypothesis' settings of hunts; registered as its profile ``perfsuite-shapes``, which the shipped hunts use."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

from perfsuite.experiments.shapes.request import HUNT_BUDGETS, HuntBudget

PROFILE = "perfsuite-shapes"


def register_profile(budget: HuntBudget) -> None:
    """Let hunts that are imported from now on draw so many shapes.

    No deadline, for measuring takes what it takes, and no database: found shapes are kept in the baselines. Hypothesis
    would ask for several faults at once, replay by a derandomised seed in CI, and call measuring slow; all that is off.
    """
    settings.register_profile(
        PROFILE,
        max_examples=budget.n_examples,
        deadline=None,
        database=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        phases=(Phase.explicit, Phase.generate, Phase.target, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def hunt_settings() -> settings:
    """Return the settings of a hunt, with the verbosity that Hypothesis was asked for."""
    return settings(settings.get_profile(PROFILE), verbosity=settings().verbosity)


register_profile(HUNT_BUDGETS["default"])
