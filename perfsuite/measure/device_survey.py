"""Survey all ceilings of a device: the processor's, and those of OpenCL where it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfsuite.device.profile import Profile, TheoreticalPeak
from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.expectation.roofline.ceiling import CPU, Ceiling, IndependentRate, Resource, Survey
from perfsuite.measure.board.protocol import Board, build_logs
from perfsuite.measure.plan import DevicesPlan, OpenClCeilingsPlan, ProbePlan
from perfsuite.measure.probes import thread_counts

#: Time for each; both together stay within 60 s, start and compilers included.
CPU_BUDGET_MS = 20_000
OPENCL_BUDGET_MS = 12_000

#: The processor of the ceilings that a device without OpenCL lacks.
OPENCL = "opencl"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRequest:
    """What is surveyed."""

    profile: Profile
    board: Board
    n_threads: int
    #: Where the logs of failed builds go, on this machine.
    log_dir: Path
    #: Part of the name of an OpenCL platform that must be there; None takes the profile's, or the best there is.
    opencl_platform: str | None = None

    @property
    def platform(self) -> str | None:
        """The OpenCL platform that was asked for, or else the profile's."""
        return self.opencl_platform or self.profile.opencl_platform


def survey_device(request: SurveyRequest, progress: Callable[[str], None]) -> Survey:
    """Measure every ceiling; what cannot be measured is a ceiling that says why.

    Raises `MeasurementError` where the processor's probes failed, or an OpenCL platform was asked for and cannot be
    used.
    """
    facts = request.board.facts()
    if request.opencl_platform:
        devices = DevicesPlan(platform=request.opencl_platform)
        request.board.run(devices, extra_environment=facts.opencl_environment)  # raises before minutes are spent
    progress("ceilings of the processor")
    plan = ProbePlan(
        cache_dir=str(facts.cache_dir),
        n_threads=request.n_threads,
        thread_counts=thread_counts(facts.usable_threads),
        budget_ms=CPU_BUDGET_MS,
    )
    ceilings = [Ceiling.from_plain(plain) for plain in request.board.run(plan)["ceilings"]]
    progress("ceilings of OpenCL")
    ceilings += _opencl_ceilings(request)
    return Survey(ceilings=tuple(with_theoretical(ceilings, request.profile.theoretical_peaks)))


def measure_bounds(request: SurveyRequest, progress: Callable[[str], None]) -> tuple[IndependentRate, ...]:
    """Run every independent program that is installed there, on one thread and on as many as the run has.

    One that fails has measured nothing, and why is reported.
    """
    return request.board.independent_rates(request.n_threads, request.platform, progress)


def with_theoretical(ceilings: Sequence[Ceiling], peaks: Iterable[TheoreticalPeak]) -> list[Ceiling]:
    """Put what a data sheet promises beside what was measured.

    It is the whole device's: beside the largest working set, and the most threads.
    """
    found = list(ceilings)
    for peak in peaks:
        promised: Any = {"theoretical_per_s": peak.per_s, "theoretical_source": peak.source}
        found = [replace(each, **promised) if _is_meant(each, peak, found) else each for each in found]
    return found


def _is_meant(ceiling: Ceiling, peak: TheoreticalPeak, ceilings: Sequence[Ceiling]) -> bool:
    is_cpu = peak.processor == CPU
    if is_cpu is not (ceiling.processor == CPU) or (not is_cpu and peak.processor not in ceiling.processor):
        return False
    alike = [each for each in ceilings if each.processor == ceiling.processor]
    if ceiling.n_threads != max((each.n_threads or 0 for each in alike), default=0) and is_cpu:
        return False
    if ceiling.resource is Resource.COMPUTE:
        return ceiling.kind == peak.kind
    largest = max(each.working_set_bytes or 0 for each in alike)
    return peak.kind == Resource.BANDWIDTH.value and ceiling.working_set_bytes == largest


def _opencl_ceilings(request: SurveyRequest) -> list[Ceiling]:
    log_dir = str(build_logs(request.board, request.log_dir))
    plan = OpenClCeilingsPlan(platform=request.platform, budget_ms=OPENCL_BUDGET_MS, log_dir=log_dir)
    try:
        payload = request.board.run(plan, extra_environment=request.board.facts().opencl_environment)
    except (MeasurementError, OpenClError) as error:
        if request.opencl_platform:
            raise
        missing = ((Resource.BANDWIDTH, "read"), (Resource.COMPUTE, "fp32"))
        return [Ceiling(processor=OPENCL, resource=each, kind=kind, missing=str(error)) for each, kind in missing]
    return [Ceiling.from_plain(plain) for plain in payload["ceilings"]]
