"""The suite's kernels beside the sources of their baseline, on a made-up device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfsuite.experiments.kernel_pairs import _sides
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.plan import KernelPlan
from tests.fake_device import HostRuns

CASE = "kernel/add/count147456/f32"


def test_a_disturbed_process_runs_once_more(runs: HostRuns) -> None:
    runs("--baseline=record", "-k", CASE)
    for is_busy, n_processes, outcome in ((False, 1, "pass"), (True, 2, "invalid")):
        runs.device.contended = is_busy
        runs.device.plans.clear()
        runs("-k", CASE)
        plans = [plan for plan in runs.device.plans if isinstance(plan, KernelPlan)]
        assert (len(plans), {plan.n_rounds for plan in plans}) == (n_processes, {16})
        assert runs.outcomes() == {outcome}


def record(lengths_ns: Sequence[int]) -> dict[str, Any]:
    """Return a side of rounds of two launches; a launch without length has no START."""
    ends = [1000 * (place + 1) for place in range(len(lengths_ns))]
    starts = [length and end - length for end, length in zip(ends, lengths_ns, strict=True)]
    found = KernelRecord(
        case_id=CASE,
        error_norm=0.0,
        tolerance=1.0,
        queued_ns=tuple(ends),
        submit_ns=tuple(ends),
        start_ns=tuple(starts),
        end_ns=tuple(ends),
        n_per_round=2,
    )
    return found.to_plain()


def test_a_round_is_a_pair() -> None:
    payload = {"old_kernels": [record([10, 10, 0, 0, 30, 0])], "kernels": [record([11, 13, 22, 22, 33, 33])]}
    assert _sides([payload]) == {CASE: ((10, 30), (12, 33))}
    assert _sides([{side: [record([])] for side in payload}]) == {CASE: ((), ())}
