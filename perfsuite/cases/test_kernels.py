"""One case for each kernel of the run."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_kernel(kernel_case: str, perf: Perf) -> None:
    """Each kernel is within its floor, its forecast and its baseline."""
    perf.judge(kernel_case)
