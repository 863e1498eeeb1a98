"""Cases of ``--perf-trace``: what a traced run shows of threads, context, products and experts."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_trace(trace_case: str, perf: Perf) -> None:
    """Threads share work, attention grows with the context, products with their size, as the rules say."""
    perf.judge(trace_case)
