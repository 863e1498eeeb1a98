"""One case for each operator of the run."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_operator(operator_case: str, perf: Perf) -> None:
    """Each operator is within its floor, its forecast and its baseline."""
    perf.judge(operator_case)
