"""Reduces what processes have timed of OpenCL kernels to the samples of a case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.records.outcome import CaseSamples
from perfsuite.trace.opencl.stamps import (
    MOST_DROPPED_RATIO,
    MOST_TICK_ERROR_RATIO,
    measured_tick_ns,
    resolved_center,
    tick_error_ns,
)


def kernel_samples(
    case_id: str, records: Sequence[KernelRecord], problems: tuple[str, ...], tick_ns: int | None
) -> CaseSamples:
    """Return the samples of a case, one a process, and why none of them can be trusted.

    `tick_ns` is that of the device's clock, as `tick_of` measures it.
    """
    wrong = tuple(
        f"the kernel computes wrongly: error norm {record.error_norm:.2g}, tolerance {record.tolerance:.2g}"
        for record in records
        if not record.is_correct
    )
    timed = [record for record in records if record.is_correct]
    n_launches = sum(len(each.end_ns) for each in timed)
    dropped = tuple(dropped_text(timed)) if _n_dropped(timed) > MOST_DROPPED_RATIO * n_launches else ()
    samples = [(resolved_center(found, tick_ns), len(found)) for each in timed if (found := each.durations_ns)]
    errors = (tick_error_ns(tick_ns, n) / center_ns if center_ns else float("inf") for center_ns, n in samples)
    tick_error_ratio = max(errors, default=0.0)
    coarse = f"its launches are too short for the tick of the device's clock, {tick_ns} ns"
    too_short = (coarse,) if tick_error_ratio > MOST_TICK_ERROR_RATIO else ()
    return CaseSamples(
        case_id=case_id,
        samples_ns=tuple(round(center) for center, _ in samples),
        problems=(*problems, *wrong[:1], *dropped, *too_short),
        error_ratio=tick_error_ratio,
    )


def tick_of(records: Iterable[KernelRecord]) -> int | None:
    """Return the tick of the device's clock, by all launches of a run."""
    times = [time_ns for record in records for time_ns in (*record.start_ns, *record.end_ns)]
    return measured_tick_ns(np.array(times, np.int64))


def dropped_text(records: Sequence[KernelRecord]) -> Iterator[str]:
    """Yield how many launches of a run were dropped and why, where any were."""
    if n_dropped := _n_dropped(records):
        stamps = [times for record in records for times in zip(record.start_ns, record.end_ns, strict=True)]
        n_zero = sum(not all(times) for times in stamps)
        yield (
            f"{n_dropped} of {len(stamps)} launches have no START and END that can be right, and are left out "
            f"({n_zero} without a time, {n_dropped - n_zero} in the wrong order)"
        )


def _n_dropped(records: Sequence[KernelRecord]) -> int:
    return sum(len(record.end_ns) - len(record.durations_ns) for record in records)
