"""A call of a function is judged by all its counts, in the same Python."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.counts import METRICS, Counts, OwnCounts, PythonBuild
from perfsuite.records.outcome import Outcome
from perfsuite.verdict.counted import CALL_MARGIN_RATIO, judge_call

KEPT = "when the counts were kept; record new ones"
PYTHON = PythonBuild(version="CPython 3.11.7", digest="d1", processor="x86-64 with AVX2")


def own(python: PythonBuild = PYTHON, **counts: int) -> OwnCounts:
    """Return what a call did: a thousand of everything, except what is given."""
    return OwnCounts(
        case_id="counted/function/sort", python=python, counts=Counts(**{**dict.fromkeys(METRICS, 1000), **counts})
    )


@pytest.mark.parametrize(
    ("now", "outcome", "reason"),
    [
        pytest.param(own(), Outcome.PASS, "1,000 instructions, as before", id="same"),
        pytest.param(
            own(instructions=1000 + int(1000 * CALL_MARGIN_RATIO)),
            Outcome.PASS,
            "1,003 instructions, within 0.30% of 1,000 before",
            id="margin",
        ),
        pytest.param(own(instructions=900), Outcome.IMPROVED, "900 instructions, 1,000 before (-10.000%)", id="less"),
        pytest.param(
            own(allocations=1001, reads=900),
            Outcome.REGRESSED,
            "900 reads, 1,000 before (-10.000%); 1,001 allocations, 1,000 before (+0.100%)",
            id="one allocation more",
        ),
        pytest.param(
            own(replace(PYTHON, version="CPython 3.12.1"), reads=900),
            Outcome.INCOMPARABLE,
            f"Python's version is CPython 3.12.1, and was CPython 3.11.7 {KEPT}",
            id="another Python",
        ),
        pytest.param(
            own(replace(PYTHON, digest="d2")),
            Outcome.INCOMPARABLE,
            f"Python's digest is d2, and was d1 {KEPT}",
            id="build",
        ),
    ],
)
def test_a_call_is_judged_by_all_its_counts(now: OwnCounts, outcome: Outcome, reason: str) -> None:
    """The reason names each count that differs, and where none does the instructions."""
    judgement = judge_call(own(), now)
    assert (judgement.case_id, judgement.outcome, judgement.reason) == ("counted/function/sort", outcome, reason)
