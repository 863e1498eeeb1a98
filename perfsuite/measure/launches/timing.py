"""Kernels that are verified and timed, as `perfsuite.measure.opencl` does with pyopencl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.kernel_references import TOLERANCES
from perfsuite.measure.launches.planning import LaunchWriter
from perfsuite.measure.launches.session import LaunchSession, own_source, standard_kernels
from perfsuite.measure.plan import KernelPlan
from perfsuite.workload.kernel_catalog import KernelCase

_STAMPS = ("queued_ns", "submit_ns", "start_ns", "end_ns")


def timed_kernels(plan: KernelPlan, session: LaunchSession) -> dict[str, Any]:
    """Return the payload of a `KernelPlan`."""
    writer, cases = session.writer(plan.seed), standard_kernels(plan.case_ids)
    steps = [_added(writer, case, plan, session) for case in cases]
    told = session.launched(writer, n_threads=plan.n_threads, built_dir=plan.built_dir)
    answers, sides = told["steps"], ([], [])  # type: tuple[Any, tuple[list[Any], list[Any]]]
    for case, (outputs, turns) in zip(cases, steps, strict=True):
        deviations = [session.outputs.deviation(case, plan.seed, answers[each]) for each in outputs]
        times = answers[turns]["times"]
        records = _records(case, deviations, times[::-1] if plan.leader else times)
        for side, record in zip(sides[2 - len(records) :], records, strict=True):
            side.append(record.to_plain())
    beside = {name: told[name] for name in told if name != "steps"}  # contention, sentinels, samples of the device
    return {"kernels": sides[1], "old_kernels": sides[0], **beside}


def _added(
    writer: LaunchWriter, case: KernelCase, plan: KernelPlan, session: LaunchSession
) -> tuple[tuple[int, ...], int]:
    """Add the steps of one case; return the places of its outputs, the old source's first, and of its turns."""
    new = writer.launch(case, own_source)
    if plan.old_kernels_dir is None:
        return (writer.output(case, new),), writer.turns((new,), plan.n_repetitions)
    old = writer.launch(case, partial(session.old_source, Path(plan.old_kernels_dir)), beside=new)
    outputs = (writer.output(case, old), writer.output(case, new))
    return outputs, writer.turns((old, new) if plan.leader == 0 else (new, old), plan.n_repetitions)


def _records(
    case: KernelCase, deviations: Sequence[float], times: Sequence[Mapping[str, Sequence[int]]]
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
        )
        for deviation, stamps in zip(deviations, times, strict=True)
    ]
