"""Cases of the experiments of other wheels, which ``--perf-experiment`` names."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_experiment(experiment_case: str, perf: Perf) -> None:
    """Each case is judged as its experiment does."""
    perf.judge(experiment_case)
