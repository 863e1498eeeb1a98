"""Cases of llama.cpp beneath llama-cpp-python: what a program in Python waits for, and what that is made of."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_binding(binding_case: str, perf: Perf) -> None:
    """Each latency that a program sees, and each part of it, is within its baseline."""
    perf.judge(binding_case)


def test_percentile(percentile_case: str, perf: Perf) -> None:
    """The slowest tokens come within their baseline; judged where --perf-margin names percentiles."""
    perf.judge(percentile_case)
