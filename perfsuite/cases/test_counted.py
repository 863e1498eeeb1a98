"""One case for each count of the run's work, with ``--device=counted`` or ``--perf-counts``."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_counted(counted_case: str, perf: Perf) -> None:
    """Each phase and operator does as much as its baseline says."""
    perf.judge(counted_case)
