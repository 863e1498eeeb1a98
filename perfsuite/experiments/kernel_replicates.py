"""Measures the OpenCL kernels once for all kernel cases of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from perfsuite.device.work_folder import work_folder
from perfsuite.errors import AskedError, MeasurementError, OpenClError
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupSamples, collect_replicates
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.plan import DevicesPlan, KernelPlan
from perfsuite.measure.schedule import others_complaint
from perfsuite.records.case import Case
from perfsuite.records.outcome import CaseSamples
from perfsuite.trace.opencl.stamps import (
    MOST_DROPPED_RATIO,
    MOST_TICK_ERROR_RATIO,
    measured_tick_ns,
    resolved_center,
    tick_error_ns,
)

#: What the kernels may take of a run, s.
KERNELS_BUDGET_S = 20.0
#: What a process may take of it, which has to start and to end besides, and launches of a kernel in a round at most.
_PROCESS_BUDGET_NS, _REPETITIONS = 7_000_000_000, 10


def measure_kernels(
    config: RunConfig, cases: Sequence[Case], device: Mapping[str, Any], progress: ProgressLine
) -> GroupSamples:
    """Run the OpenCL kernels in `n_replicates` fresh processes, or as many as there is time for.

    A stored baseline is of several processes, and what each of them draws is part of its spread; several rounds of one
    process would spread less than its next run does.

    Raises MeasurementError: a kernel does not build or run.
    """
    environment = kernel_environment(config)
    with _built_folder(config) as built_dir:
        plan = replace(kernel_plan(config, cases), built_dir=built_dir)
        replicates = collect_replicates(
            config,
            lambda: config.board.run(plan, extra_environment=environment),
            others_complaint,
            "OpenCL kernels",
            progress,
            group="kernels",
            budget_s=KERNELS_BUDGET_S,
        )
    by_case: dict[str, list[KernelRecord]] = defaultdict(list)
    for payload in replicates.shown_payloads:
        for plain in payload["kernels"]:
            by_case[plain["case_id"]].append(KernelRecord.from_plain(plain))
    records = [record for found in by_case.values() for record in found]
    tick_ns, problems = tick_of(records), replicates.problems
    return replace(
        replicates.group,
        samples={
            case.case_id: kernel_samples(case.case_id, by_case[case.case_id], problems, tick_ns) for case in cases
        },
        notes=(*replicates.group.notes, *(f"{description(device)}: {text}" for text in dropped_text(records))),
        fingerprint=kernel_fingerprint(config, device),
        on_processor=device["type"] == "cpu",
        description=description(device),
    )


@contextmanager
def _built_folder(config: RunConfig) -> Iterator[str | None]:
    """Give a folder of this run for what its processes build, which takes longer than measuring; none on a board."""
    if config.board.is_local:
        with work_folder() as folder:
            yield str(folder)
    else:
        yield None


def kernel_plan(config: RunConfig, cases: Sequence[Case]) -> KernelPlan:
    """Return the plan of one process."""
    return KernelPlan(
        case_ids=tuple(case.case_id for case in cases),
        platform=_platform(config),
        n_repetitions=_REPETITIONS,
        budget_ns=_PROCESS_BUDGET_NS,
        seed=0,
        log_dir=str(config.log_dir),
        n_threads=config.n_threads,
    )


def kernel_fingerprint(config: RunConfig, device: Mapping[str, Any]) -> dict[str, str]:
    """Return what must be equal for two runs of the kernels to be comparable."""
    return {
        **config.board.facts().fingerprint,
        "opencl_platform": f"{device['platform_name']}, {device['platform_version']}",
        "opencl_device": device["device_name"],
        "opencl_driver": device["driver_version"],
    }


def description(device: Mapping[str, Any]) -> str:
    """Name a device, for the header of a report."""
    return f"{device['device_name']} ({device['platform_name']} {device['driver_version']})"


def kernel_environment(config: RunConfig) -> Mapping[str, str]:
    """Return the variables with which a child finds the OpenCL runtimes."""
    return config.board.facts().opencl_environment


def opencl_device(config: RunConfig) -> dict[str, Any]:
    """Return the device that the kernels run on.

    Raises OpenClError: there is none, and none was asked for; MeasurementError: the one that was asked for is not
    there.
    """
    try:
        plan = DevicesPlan(platform=_platform(config))
        chosen: dict[str, Any] = config.board.run(plan, extra_environment=kernel_environment(config))["chosen"]
    except AskedError:  # no plan depends on it
        return dict.fromkeys(("platform_name", "platform_version", "device_name", "driver_version", "type"), "unknown")
    except MeasurementError as error:
        if config.opencl_platform:
            raise
        raise OpenClError(str(error)) from error
    return chosen


def _platform(config: RunConfig) -> str | None:
    return config.opencl_platform or config.profile.opencl_platform


def lack_of_opencl(config: RunConfig) -> str | None:
    """Return why a board has no device for the kernels; None where it has one, or a platform was named.

    A driver that crashes is no lack: its kernels are measured, and invalid.
    """
    if _platform(config):
        return None
    try:
        opencl_device(config)
    except OpenClError as error:
        return str(error) if str(error).startswith("OpenCL: ") else None
    return None


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
    tick_error_ratio = max((_tick_error_ratio(each, n, tick_ns) for each, n in samples), default=0.0)
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


def _tick_error_ratio(center_ns: float, n_launches: int, tick_ns: int | None) -> float:
    return tick_error_ns(tick_ns, n_launches) / center_ns if center_ns else float("inf")


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
