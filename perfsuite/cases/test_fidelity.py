"""Cases of ``--perf-fidelity``: the suite's own timings against ground truths that do not depend on them."""

from __future__ import annotations

from perfsuite.plugin.fixtures import Perf


def test_fidelity(fidelity_case: str, perf: Perf) -> None:
    """What the suite measures is what an independent tracer, or kernel duplication, says that it is."""
    perf.judge(fidelity_case)
