"""Cases of ``--perf-overhead``: what following a run costs it."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_overhead(overhead_case: str, perf: Perf) -> None:
    """A recorder, or several together, cost a phase no more than is promised."""
    perf.judge(overhead_case)
