"""One case for each kernel of the run: the suite's own, and those that the engine launches."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_kernel(kernel_case: str, perf: Perf) -> None:
    """Each kernel is within its floor, its forecast and its baseline."""
    perf.judge(kernel_case)


def test_engine_kernel(engine_kernel_case: str, perf: Perf) -> None:
    """Each kernel that the engine launches on its device is within its floor, its forecast and its baseline."""
    perf.judge(engine_kernel_case)
