"""Cases of the sweeps that ``--perf-sweep`` names."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_point(roofline_case: str, perf: Perf) -> None:
    """Each point is under its roof, and where it was."""
    perf.judge(roofline_case)


def test_statement(roofline_statement: str, perf: Perf) -> None:
    """Each phase is limited by what must limit it, and series have their order."""
    perf.holds(roofline_statement)
