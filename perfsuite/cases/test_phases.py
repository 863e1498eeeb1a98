"""One case for each phase of the run."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_phase(phase_case: str, perf: Perf) -> None:
    """Each phase is within its floor, its forecast and its baseline."""
    perf.judge(phase_case)
