"""The survey of a whole device, with the workers replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.profile import TheoreticalPeak, find_profile
from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.expectation.roofline.ceiling import Ceiling, Resource
from perfsuite.expectation.roofline.independent_rate import IndependentRate
from perfsuite.measure.device_survey import (
    CPU_BUDGET_MS,
    OPENCL_BUDGET_MS,
    SurveyRequest,
    measure_bounds,
    survey_device,
    with_theoretical,
)
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import DevicesPlan, OpenClCeilingsPlan, Plan, SurveyPlan

from ..synthetic_opencl_backend import opencl_device
from ..synthetic_roofline import bandwidth_ceiling, ceilings, compute_ceiling, independent_rate

HOME = "perfsuite.measure.device_survey"

DEVICE = opencl_device("gpu").to_plain()

OF_DEVICE = tuple(replace(each, processor="A device") for each in ceilings(None))

REASON = "OpenCL: no platform has a device; install pocl-opencl-icd"


class Machine:
    """Answers plans, and notes them."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.opencl_error: Exception | None = None
        self.cpu_error: Exception | None = None

    def run(self, plan: Plan, **_: object) -> dict[str, Any]:
        """Return what a worker would send."""
        self.plans.append(plan)
        if isinstance(plan, SurveyPlan):
            if self.cpu_error:
                raise self.cpu_error
            return {"ceilings": [each.to_plain() for each in ceilings()]}
        if self.opencl_error:
            raise self.opencl_error
        if isinstance(plan, DevicesPlan):
            return {"chosen": DEVICE, "devices": [DEVICE]}
        return {"ceilings": [each.to_plain() for each in OF_DEVICE]}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Replace the workers."""
    found = Machine()
    monkeypatch.setattr(f"{HOME}.run_worker", found.run)
    monkeypatch.setattr(f"{HOME}.opencl_environment", lambda cache_dir, inherited: {})
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Replace the programs of others, and note of what they are asked."""
    found: list[object] = []

    def on_processor(
        *, n_threads: int, working_set_bytes: int, budget_ms: int, tell: object
    ) -> tuple[IndependentRate, ...]:
        found.append(n_threads)
        assert working_set_bytes >= 16 * 2**20
        return (independent_rate(n_threads=n_threads),)

    def on_device(device: OpenClDevice, environment: object) -> tuple[IndependentRate, ...]:
        found.append(device.device_name)
        return (independent_rate(processor=device.device_name, n_threads=None),)

    monkeypatch.setattr(f"{HOME}.rates_on_processor", on_processor)
    monkeypatch.setattr(f"{HOME}.rates_on_device", on_device)
    return found


def request(folder: Path, **changes: Any) -> SurveyRequest:
    """Return a request of this machine without theoretical peaks."""
    usual = SurveyRequest(
        profile=replace(find_profile("host"), theoretical_peaks=(), opencl_platform=None),
        n_threads=2,
        thread_counts=(1, 2),
        cache_dir=folder,
        log_dir=folder / "logs",
    )
    return replace(usual, **changes)


def silent(_: str) -> None:
    """Say nothing."""


def peak(**changes: Any) -> TheoreticalPeak:
    """Return what a data sheet says of the processor's memory."""
    usual = TheoreticalPeak(processor="cpu", kind="bandwidth", per_s=51.2e9, source="a data sheet")
    return replace(usual, **changes)


def with_peaks(found: list[Ceiling]) -> list[tuple[str, str, int | None]]:
    """Tell which ceilings have a theoretical peak."""
    return [(each.processor, each.kind, each.working_set_bytes) for each in found if each.theoretical_per_s]


def test_a_device_has_the_ceilings_of_both(machine: Machine, tmp_path: Path) -> None:
    """The processor comes first, then OpenCL; each worker is given its time."""
    told: list[str] = []
    found = survey_device(request(tmp_path), told.append)
    assert found.ceilings == (*ceilings(), *OF_DEVICE)
    assert told == ["ceilings of the processor", "ceilings of OpenCL"]
    cpu, opencl = machine.plans
    assert cpu == SurveyPlan(cache_dir=str(tmp_path), n_threads=2, thread_counts=(1, 2), budget_ms=CPU_BUDGET_MS)
    assert opencl == OpenClCeilingsPlan(platform=None, budget_ms=OPENCL_BUDGET_MS, log_dir=str(tmp_path / "logs"))


def test_both_stay_within_a_minute() -> None:
    """What is asked of both workers leaves time for their start and for compilers."""
    assert CPU_BUDGET_MS + OPENCL_BUDGET_MS <= 45_000


@pytest.mark.parametrize(("asked_for", "of_profile", "taken"), [(None, "Intel", "Intel"), ("PoCL", "Intel", "PoCL")])
def test_the_platform_asked_for_comes_first(
    machine: Machine, tmp_path: Path, asked_for: str | None, of_profile: str, taken: str
) -> None:
    """The profile's platform is taken where none was asked for."""
    profile = replace(find_profile("host"), theoretical_peaks=(), opencl_platform=of_profile)
    survey_device(request(tmp_path, profile=profile, opencl_platform=asked_for), silent)
    (plan,) = (each for each in machine.plans if isinstance(each, OpenClCeilingsPlan))
    assert plan.platform == taken
    assert isinstance(machine.plans[0], DevicesPlan if asked_for else SurveyPlan)


def test_a_program_that_fails_is_told_and_measures_nothing(
    machine: Machine, asked: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clpeak that fails leaves the processor's rates, and its last words."""

    def refuse(device: OpenClDevice, environment: object) -> tuple[IndependentRate, ...]:
        raise MeasurementError("clpeak: returned 1: no devices")

    monkeypatch.setattr(f"{HOME}.rates_on_device", refuse)
    told: list[str] = []
    assert [rate.n_threads for rate in measure_bounds(request(tmp_path), told.append)] == [1, 2]
    assert told[-1] == "clpeak: returned 1: no devices"


def test_the_data_sheet_speaks_of_all_threads() -> None:
    """What is promised of a whole processor does not stand beside one thread of it."""
    both = [*ceilings(1), *ceilings(2)]
    found = with_theoretical(both, [peak(kind="fp32"), peak(kind="bandwidth")])
    assert {each.n_threads for each in found if each.theoretical_per_s is not None} == {2}


@pytest.mark.parametrize("error", [MeasurementError(REASON), OpenClError(REASON)])
def test_a_device_without_opencl_says_why(machine: Machine, tmp_path: Path, error: Exception) -> None:
    """The processor's ceilings are all there, and two that are missing, which come back from a file."""
    machine.opencl_error = error
    found = survey_device(request(tmp_path), silent).ceilings
    assert found[: len(ceilings())] == ceilings()
    missing = found[len(ceilings()) :]
    assert [(each.processor, each.kind, each.missing) for each in missing] == [
        ("opencl", "read", REASON),
        ("opencl", "fp32", REASON),
    ]
    assert [Ceiling.from_plain(each.to_plain()) for each in missing] == [*missing]


def test_runtimes_that_cannot_be_listed_are_missing_opencl(
    machine: Machine, asked: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the folder of the runtimes cannot be written, ceilings and bounds of the processor are there still."""

    def refuse(cache_dir: Path, inherited: str | None) -> None:
        raise OpenClError("cache: Read-only file system; the OpenCL vendors directory goes there")

    monkeypatch.setattr(f"{HOME}.opencl_environment", refuse)
    found = survey_device(request(tmp_path), silent)
    assert {each.missing for each in found.ceilings if each.processor == "opencl"} == {
        "cache: Read-only file system; the OpenCL vendors directory goes there"
    }
    assert [rate.n_threads for rate in measure_bounds(request(tmp_path), silent)] == [1, 2]


def test_a_platform_that_was_asked_for_must_be_there(machine: Machine, tmp_path: Path) -> None:
    """Nothing stands in for a platform by name: its error is the survey's."""
    machine.opencl_error = MeasurementError("OpenCL: expected a platform named like 'none', found no platform")
    with pytest.raises(MeasurementError, match="named like 'none'"):
        survey_device(request(tmp_path, opencl_platform="none"), silent)


def test_a_processor_without_ceilings_is_an_error(machine: Machine, tmp_path: Path) -> None:
    """Without the processor's own ceilings there is no roofline."""
    machine.cpu_error = MeasurementError("probes: no memory")
    with pytest.raises(MeasurementError, match="probes: no memory"):
        survey_device(request(tmp_path), silent)


def test_the_profile_puts_its_peaks_beside(machine: Machine, tmp_path: Path) -> None:
    """What the profile's data sheet says is in the survey, with its source."""
    profile = replace(find_profile("host"), theoretical_peaks=(peak(),), opencl_platform=None)
    found = survey_device(request(tmp_path, profile=profile), silent).ceilings
    beside = [each for each in found if each.theoretical_per_s]
    assert {(each.theoretical_per_s, each.theoretical_source) for each in beside} == {(51.2e9, "a data sheet")}
    assert {(each.processor, each.working_set_bytes) for each in beside} == {("cpu", 10**9)}


def test_a_peak_of_memory_is_beside_the_largest_working_set() -> None:
    """No cache is compared with the memory's data sheet."""
    found = with_theoretical([*ceilings(), *OF_DEVICE], [peak()])
    assert with_peaks(found) == [("cpu", kind, 10**9) for kind in ("read", "copy", "triad")]


def test_a_peak_of_arithmetic_is_beside_its_kind() -> None:
    """FP32 is beside FP32, and what is missing keeps its reason beside what it should be."""
    found = with_theoretical(ceilings(), [peak(kind="fp32", per_s=512e9), peak(kind="f16", per_s=1e12)])
    assert with_peaks(found) == [("cpu", "fp32", None), ("cpu", "f16", None)]
    assert found[-2].missing == "the processor has none"


@pytest.mark.parametrize(
    ("name", "is_meant"), [("device", True), ("A device", True), ("cpu", False), ("Adreno", False)]
)
def test_a_peak_of_opencl_names_its_device(name: str, is_meant: bool) -> None:
    """A part of the device's name is enough; the processor's peaks are not those of a device, nor the reverse."""
    found = with_theoretical(
        [compute_ceiling(1e9, processor="A device", n_threads=None)], [peak(processor=name, kind="fp32")]
    )
    assert bool(with_peaks(found)) is is_meant


def test_a_device_named_after_a_processor_is_none() -> None:
    """A device whose name holds ``cpu`` does not get the processor's peaks."""
    found = with_theoretical([compute_ceiling(1e9, processor="cpu-skylake", n_threads=None)], [peak(kind="fp32")])
    assert with_peaks(found) == []


def test_a_device_that_is_missing_has_no_peak_of_memory() -> None:
    """Without a working set there is nothing to put the memory's peak beside."""
    missing = Ceiling(processor="opencl", resource=Resource.BANDWIDTH, kind="read", missing="none")
    assert with_peaks(with_theoretical([missing], [peak(processor="opencl")])) == []


def test_nothing_else_is_changed_by_a_peak() -> None:
    """Rates stay what was measured."""
    before = [bandwidth_ceiling(20e9, 10**9)]
    (after,) = with_theoretical(before, [peak(per_s=1.0)])
    assert replace(after, theoretical_per_s=None, theoretical_source="") == before[0]


def test_programs_run_on_one_thread_and_on_all(machine: Machine, asked: list[object], tmp_path: Path) -> None:
    """The processor is asked twice, the device once."""
    rates = measure_bounds(request(tmp_path), silent)
    assert asked == [1, 2, "A device"]
    assert [(rate.processor, rate.n_threads) for rate in rates] == [("cpu", 1), ("cpu", 2), ("A device", None)]


def test_a_run_on_one_thread_asks_once(machine: Machine, asked: list[object], tmp_path: Path) -> None:
    """One thread is not measured twice."""
    measure_bounds(request(tmp_path, n_threads=1), silent)
    assert asked == [1, "A device"]


@pytest.mark.parametrize("make", [MeasurementError, OpenClError])
def test_without_opencl_the_processor_is_bounded_still(
    machine: Machine, asked: list[object], tmp_path: Path, make: Callable[[str], Exception]
) -> None:
    """No device means no program for it, and no error."""
    machine.opencl_error = make(REASON)
    assert [rate.processor for rate in measure_bounds(request(tmp_path), silent)] == ["cpu", "cpu"]
