"""The survey of a whole device, with the workers replaced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.machine import usable_threads
from perfsuite.device.profile import TheoreticalPeak, find_profile
from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.expectation.roofline.ceiling import Ceiling, IndependentRate, Resource
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.device_survey import (
    CPU_BUDGET_MS,
    OPENCL_BUDGET_MS,
    SurveyRequest,
    measure_bounds,
    survey_device,
    with_theoretical,
)
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import DevicesPlan, OpenClCeilingsPlan, Plan, ProbePlan
from perfsuite.measure.probes import thread_counts
from perfsuite.testing.workers import replace_workers

from ..synthetic_opencl_backend import opencl_device
from ..synthetic_roofline import ceilings, compute_ceiling, independent_rate

DEVICE = opencl_device("gpu").to_plain()

OF_DEVICE = tuple(replace(each, processor="A device") for each in ceilings(None))

REASON = "OpenCL: no platform has a device; install pocl-opencl-icd"


class Machine:
    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.opencl_error: Exception | None = None
        self.cpu_error: Exception | None = None

    def run(self, plan: Plan, **_: object) -> dict[str, Any]:
        self.plans.append(plan)
        if isinstance(plan, ProbePlan):
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
    found = Machine()
    replace_workers(monkeypatch, found.run)
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Replace the programs of others, and note of what they are asked."""
    found: list[object] = []

    def on_processor(*, n_threads: int, working_set_bytes: int, **_: object) -> tuple[IndependentRate, ...]:
        found.append(n_threads)
        assert working_set_bytes >= 16 * 2**20
        return (independent_rate(n_threads=n_threads),)

    def on_device(device: OpenClDevice, environment: object, **_: object) -> tuple[IndependentRate, ...]:
        found.append(device.device_name)
        return (independent_rate(processor=device.device_name, n_threads=None),)

    monkeypatch.setattr("perfsuite.measure.independent_rates.rates_on_processor", on_processor)
    monkeypatch.setattr("perfsuite.measure.independent_rates.rates_on_device", on_device)
    return found


def request(folder: Path, **changes: Any) -> SurveyRequest:
    usual = SurveyRequest(
        profile=replace(find_profile("host"), theoretical_peaks=(), opencl_platform=None),
        n_threads=2,
        board=LocalBoard(cache_dir=folder),
        log_dir=folder / "logs",
    )
    return replace(usual, **changes)


def peak(**changes: Any) -> TheoreticalPeak:
    usual = TheoreticalPeak(processor="cpu", kind="bandwidth", per_s=51.2e9, source="a data sheet")
    return replace(usual, **changes)


def with_peaks(found: list[Ceiling]) -> list[tuple[str, str, int | None]]:
    return [(each.processor, each.kind, each.working_set_bytes) for each in found if each.theoretical_per_s]


def test_a_device_has_the_ceilings_of_both(machine: Machine, tmp_path: Path) -> None:
    told: list[str] = []
    found = survey_device(request(tmp_path), told.append)
    assert found.ceilings == (*ceilings(), *OF_DEVICE)
    assert told == ["ceilings of the processor", "ceilings of OpenCL"]
    cpu, opencl = machine.plans
    assert cpu == ProbePlan(
        cache_dir=str(tmp_path), n_threads=2, thread_counts=thread_counts(usable_threads()), budget_ms=CPU_BUDGET_MS
    )
    assert opencl == OpenClCeilingsPlan(platform=None, budget_ms=OPENCL_BUDGET_MS, log_dir=str(tmp_path / "logs"))


@pytest.mark.parametrize(("asked_for", "taken"), [(None, "Intel"), ("PoCL", "PoCL")])
def test_the_platform_asked_for_comes_first(
    machine: Machine, tmp_path: Path, asked_for: str | None, taken: str
) -> None:
    profile = replace(find_profile("host"), theoretical_peaks=(), opencl_platform="Intel")
    survey_device(request(tmp_path, profile=profile, opencl_platform=asked_for), print)
    (plan,) = (each for each in machine.plans if isinstance(each, OpenClCeilingsPlan))
    assert plan.platform == taken
    assert isinstance(machine.plans[0], DevicesPlan if asked_for else ProbePlan)


def test_a_program_that_fails_is_told_and_measures_nothing(
    machine: Machine, asked: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(device: OpenClDevice, environment: object, **_: object) -> tuple[IndependentRate, ...]:
        raise MeasurementError("clpeak: returned 1: no devices")

    monkeypatch.setattr("perfsuite.measure.independent_rates.rates_on_device", refuse)
    told: list[str] = []
    assert [rate.n_threads for rate in measure_bounds(request(tmp_path), told.append)] == [1, 2]
    assert told[-1] == "clpeak: returned 1: no devices"


def test_the_data_sheet_speaks_of_all_threads() -> None:
    """What is promised of a whole processor is not shown beside one thread of it."""
    both = [*ceilings(1), *ceilings(2)]
    found = with_theoretical(both, [peak(kind="fp32"), peak(kind="bandwidth")])
    assert {each.n_threads for each in found if each.theoretical_per_s is not None} == {2}


@pytest.mark.parametrize("is_listed", [True, False])
def test_a_device_without_opencl_says_why(
    machine: Machine,
    asked: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_listed: bool,
) -> None:
    """The processor's ceilings and bounds are all there, and two that are missing, which come back from a file.

    So they are where the folder of the runtimes cannot be written.
    """
    machine.opencl_error = OpenClError(REASON)

    def refuse(cache_dir: Path, inherited: str | None) -> None:
        raise OpenClError(REASON)  # as the folder of the runtimes is refused

    if not is_listed:
        monkeypatch.setattr("perfsuite.measure.kernel_runtime.opencl_environment", refuse)
    found = survey_device(request(tmp_path), print).ceilings
    assert found[: len(ceilings())] == ceilings()
    missing = found[len(ceilings()) :]
    assert [(each.processor, each.kind) for each in missing] == [("opencl", "read"), ("opencl", "fp32")]
    assert {each.missing for each in missing} == {REASON}
    assert [Ceiling.from_plain(each.to_plain()) for each in missing] == [*missing]
    assert [rate.processor for rate in measure_bounds(request(tmp_path), print)] == ["cpu", "cpu"]


def test_what_must_be_there_is_an_error(machine: Machine, tmp_path: Path) -> None:
    """Nothing stands in for a platform by name, nor for the processor's own ceilings."""
    machine.opencl_error = MeasurementError("OpenCL: expected a platform named like 'none', found no platform")
    with pytest.raises(MeasurementError, match="named like 'none'"):
        survey_device(request(tmp_path, opencl_platform="none"), print)
    machine.cpu_error = MeasurementError("probes: no memory")
    with pytest.raises(MeasurementError, match="probes: no memory"):
        survey_device(request(tmp_path), print)


def test_a_peak_is_beside_what_it_is_of() -> None:
    """Memory's beside the largest working set, FP32 beside FP32; rates and reasons stay, and no other has one."""
    found = with_theoretical([*ceilings(), *OF_DEVICE], [peak()])
    assert with_peaks(found) == [("cpu", kind, 10**9) for kind in ("read", "copy", "triad")]
    assert [replace(each, theoretical_per_s=None, theoretical_source="") for each in found] == [*ceilings(), *OF_DEVICE]
    found = with_theoretical(ceilings(), [peak(kind="fp32", per_s=512e9), peak(kind="f16", per_s=1e12)])
    assert with_peaks(found) == [("cpu", "fp32", None), ("cpu", "f16", None)]
    assert found[-2].missing == "the processor has none"
    missing = Ceiling(processor="opencl", resource=Resource.BANDWIDTH, kind="read", missing="none")
    assert with_peaks(with_theoretical([missing], [peak(processor="opencl")])) == []


@pytest.mark.parametrize(
    ("device", "name", "is_meant"),
    [
        ("A device", "device", True),
        ("A device", "cpu", False),
        ("A device", "Adreno", False),
        ("cpu-skylake", "cpu", False),
    ],
)
def test_a_peak_of_opencl_names_its_device(device: str, name: str, is_meant: bool) -> None:
    measured = [compute_ceiling(1e9, processor=device, n_threads=None)]
    assert bool(with_peaks(with_theoretical(measured, [peak(processor=name, kind="fp32")]))) is is_meant


def test_programs_run_on_one_thread_and_on_all(machine: Machine, asked: list[object], tmp_path: Path) -> None:
    rates = measure_bounds(request(tmp_path), print)
    assert asked == [1, 2, "A device"]
    assert [(rate.processor, rate.n_threads) for rate in rates] == [("cpu", 1), ("cpu", 2), ("A device", None)]
    measure_bounds(request(tmp_path, n_threads=1), print)
    assert asked[3:] == [1, "A device"]
