"""Kernels that are verified and timed.

Every launch is waited for before the next, and all launches of a case use the same buffers, so that inputs which fit in
the device's caches are read from there. Two sides are launched in ABBA order on the same buffers of one queue: what
disturbs the device for longer than a launch disturbs both. Where the code of a program lies is drawn once a process,
and belongs to a difference.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.kernel_references import TOLERANCES
from perfsuite.measure.launches.session import LaunchSession, LaunchWriter, own_source, standard_kernels
from perfsuite.measure.plan import KernelPlan
from perfsuite.workload.kernel_catalog import KernelCase

_STAMPS = ("queued_ns", "submit_ns", "start_ns", "end_ns")


def timed_kernels(plan: KernelPlan, session: LaunchSession) -> dict[str, Any]:
    """Return the payload of a `KernelPlan`."""
    writer, cases = session.writer(plan.seed), standard_kernels(plan.case_ids)
    launches = [_sides(writer, case, plan, session) for case in cases]
    outputs = [[writer.output(case, side) for side in sides] for case, sides in zip(cases, launches, strict=True)]
    leaders = drawn_leaders(plan.order_seed, n_rounds=plan.n_rounds, n_kernels=len(cases))
    turns = writer.turns(tuple(chain(*launches)), plan.n_repetitions, leaders, plan.budget_ns) if cases else 0
    told = session.launched(writer, n_threads=plan.n_threads, built_dir=plan.built_dir)
    times = iter(told["steps"][turns]["times"] if cases else ())
    rounds = told["steps"][turns]["n_per_round"] if cases else ()
    records = [
        _records(
            case,
            [session.outputs.deviation(case, plan.seed, told["steps"][each]) for each in steps],
            [next(times) for _ in steps],
            n_per_round,
        )
        for case, steps, n_per_round in zip(cases, outputs, rounds, strict=True)
    ]
    beside = {name: told[name] for name in told if name != "steps"}  # contention, sentinels, samples of the device
    old = [each[0].to_plain() for each in records if plan.old_kernels_dir]
    return {"kernels": [each[-1].to_plain() for each in records], "old_kernels": old, **beside}


def drawn_leaders(seed: int, *, n_rounds: int, n_kernels: int) -> tuple[tuple[int, ...], ...]:
    """Draw which side of each kernel is first, round by round; of two rounds each side leads one."""
    order = random.Random(seed)
    leaders: list[tuple[int, ...]] = []
    while len(leaders) < n_rounds:
        first = tuple(order.randrange(2) for _ in range(n_kernels))
        leaders += (first, tuple(1 - each for each in first))
    return tuple(leaders[:n_rounds])


def _sides(writer: LaunchWriter, case: KernelCase, plan: KernelPlan, session: LaunchSession) -> tuple[int, ...]:
    """Add the launches of one case, that of the old source first; return their places."""
    new = writer.launch(case, own_source)
    if plan.old_kernels_dir is None:
        return (new,)
    return writer.launch(case, partial(session.old_source, Path(plan.old_kernels_dir)), beside=new), new


def _records(
    case: KernelCase, deviations: Sequence[float], times: Sequence[Mapping[str, Sequence[int]]], n_per_round: int
) -> list[KernelRecord]:
    """Return what the launches of a case came to; how fast it is counts only where all compute rightly."""
    tolerance = TOLERANCES[case.type]
    is_right = all(each <= tolerance for each in deviations)
    return [
        KernelRecord(
            case_id=case.case_id,
            error_norm=deviation,
            tolerance=tolerance,
            **{name: tuple(stamps[name]) if is_right else () for name in _STAMPS},
            n_per_round=n_per_round,
        )
        for deviation, stamps in zip(deviations, times, strict=True)
    ]
