"""Measures the OpenCL kernels once for all kernel cases of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.expectation.cases import Case
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupSamples, collect_replicates
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.plan import DevicesPlan, KernelPlan
from perfsuite.measure.schedule import Payload, others_complaint
from perfsuite.records.outcome import CaseSamples

_REPETITIONS = 20


def measure_kernels(
    config: RunConfig, cases: Sequence[Case], device: Mapping[str, Any], progress: ProgressLine
) -> GroupSamples:
    """Run the OpenCL kernels in `n_replicates` fresh processes, on what `opencl_device` has found.

    Raises MeasurementError: a kernel does not build or run.
    """
    environment = kernel_environment(config)
    plan = kernel_plan(config, cases)

    def run() -> Payload:
        return config.board.run(plan, extra_environment=environment)

    replicates = collect_replicates(config, run, others_complaint, "OpenCL kernels", progress, group="kernels")
    by_case: dict[str, list[KernelRecord]] = defaultdict(list)
    for payload in replicates.shown_payloads:
        for plain in payload["kernels"]:
            by_case[plain["case_id"]].append(KernelRecord.from_plain(plain))
    return replace(
        replicates.group,
        samples={case.case_id: kernel_samples(case, by_case[case.case_id], replicates.problems) for case in cases},
        fingerprint=kernel_fingerprint(config, device),
        on_processor=device["type"] == "cpu",
        description=description(device),
    )


def kernel_plan(config: RunConfig, cases: Sequence[Case]) -> KernelPlan:
    """Return the plan of one process."""
    return KernelPlan(
        case_ids=tuple(case.case_id for case in cases),
        platform=_platform(config),
        n_repetitions=_REPETITIONS,
        seed=0,
        log_dir=str(config.log_dir),
        cache_dir=str(config.board.facts().cache_dir),
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
    except MeasurementError as error:
        if config.opencl_platform:
            raise
        raise OpenClError(str(error)) from error
    return chosen


def _platform(config: RunConfig) -> str | None:
    return config.opencl_platform or config.profile.opencl_platform


def kernel_samples(case: Case, records: Sequence[KernelRecord], problems: tuple[str, ...]) -> CaseSamples:
    """Return the samples of a case, one a process, and why none of them can be trusted."""
    wrong = tuple(
        f"the kernel computes wrongly: error norm {record.error_norm:.2g}, tolerance {record.tolerance:.2g}"
        for record in records
        if not record.is_correct
    )
    anomalies = tuple(
        f"{record.zero_durations} of {len(record.end_ns)} launches have no duration on the device's clock"
        for record in records
        if record.zero_durations
    )
    samples = tuple(round(median(record.durations_ns)) for record in records if record.durations_ns)
    return CaseSamples(case_id=case.case_id, samples_ns=samples, problems=(*problems, *wrong[:1], *anomalies[:1]))
