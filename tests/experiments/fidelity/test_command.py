"""``perfsuite fidelity``, with nothing measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.errors import OpenClError
from perfsuite.experiments.fidelity.request import FidelityRequest
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun
from perfsuite.measure.plan import DevicesPlan
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS
from tests.command_streams import Refused, Streams
from tests.synthetic_fidelity import row

GOOD = (
    row("decode", 10**6, 10**6),
    row("kernel/add/count8/f32", 199_000, 200_000),
    row("decode", 99.0, 100.0, kind=FidelityKind.OPERATORS),
)


@dataclass
class Recorder:
    """Answers every request with the same rows, and notes what was asked for."""

    rows: tuple[FidelityRow, ...] = GOOD
    problems: tuple[str, ...] = ()
    requests: list[FidelityRequest] = field(default_factory=list)
    looked_for: list[str | None] = field(default_factory=list)

    def look_for(self, plan: DevicesPlan, *, extra_environment: dict[str, str]) -> dict[str, Any]:
        """Know one OpenCL platform."""
        assert extra_environment is not None
        self.looked_for.append(plan.platform)
        if plan.platform != "pocl":
            raise OpenClError(f"OpenCL: expected a platform named like {plan.platform!r}")
        return {}

    def record(self, request: FidelityRequest, announce: Callable[[str], None]) -> FidelityRun:
        """Return the run."""
        self.requests.append(request)
        announce("a step")
        return FidelityRun(
            device="host", platform=None, conditions={"clocks": "locked"}, rows=self.rows, problems=self.problems
        )


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorder:
    """Replace the measurement, and the caches by a temporary folder."""
    found = Recorder()
    monkeypatch.setattr("perfsuite.experiments.fidelity.command.record_fidelity", found.record)
    monkeypatch.setattr("perfsuite.experiments.fidelity.command.run_worker", found.look_for)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return found


def test_json_has_the_three_kinds(recorder: Recorder, capsys: Streams) -> None:
    """Standard output is one object for programs, and the steps go to standard error."""
    assert main(["fidelity", "--json"]) == 0
    out, err = capsys.readouterr()
    plain = json.loads(out)
    assert next(iter(plain.items())) == ("schema", 1)
    assert [row["name"] for kind in ("phases", "operators", "kernels") for row in plain[kind]] == [
        "decode",
        "decode",
        "kernel/add/count8/f32",
    ]
    assert err == "fidelity: a step\n"


@pytest.mark.parametrize(
    ("rows", "problems", "status"),
    [
        (GOOD, (), 0),
        (GOOD, ("kernels: no memory",), 1),
        ((row("decode", 2 * 10**6, 10**6),), (), 1),
        ((row("decode", None, None),), (), 1),
        ((row("decode", 50.0, 100.0, kind=FidelityKind.OPERATORS),), (), 0),
    ],
    ids=["good", "not measured", "not accurate", "unknown", "no limit"],
)
def test_the_exit_code_says_whether_the_limits_are_met(
    recorder: Recorder, rows: tuple[FidelityRow, ...], problems: tuple[str, ...], status: int
) -> None:
    """It is 1 where a limit is not met, or where it is not known whether it is."""
    recorder.rows, recorder.problems = rows, problems
    assert main(["fidelity"]) == status


def test_by_default_everything_is_measured(recorder: Recorder) -> None:
    """All kinds, all kernels of the catalogue, with probes, on the processor."""
    main(["fidelity"])
    (request,) = recorder.requests
    assert request.kinds == frozenset(FidelityKind)
    assert request.case_ids == tuple(case.case_id for case in STANDARD_KERNELS)
    assert recorder.looked_for == []
    assert (request.with_uprobes, request.opencl, request.n_processes, request.n_rounds) == (True, None, 3, 5)
    assert request.workload.prefix == "smollm2-135m-q8_0/siso"


@pytest.mark.parametrize("kind", FidelityKind)
def test_one_kind_can_be_asked_for(recorder: Recorder, kind: FidelityKind) -> None:
    """Each has an option that leaves out the others."""
    main(["fidelity", f"--{kind.value}-only"])
    assert recorder.requests[0].kinds == {kind}


def test_options_are_passed_on(recorder: Recorder) -> None:
    """Model, scenario, threads, platform, rounds, budget and kernels are those that were named."""
    options = "--model smollm2-135m-l2-q8_0 --scenario p8-g2 --threads 3 --opencl-platform pocl --rounds 7"
    main(["fidelity", *options.split(), "--kernel-budget", "0.5", "--kernel", "gemv_f16", "--no-uprobes"])
    (request,) = recorder.requests
    assert recorder.looked_for == ["pocl"]
    assert request.workload.prefix == "smollm2-135m-l2-q8_0/p8-g2"
    assert (request.n_threads, request.opencl_platform, request.n_rounds) == (3, "pocl", 7)
    assert (request.kernel_budget_ns, request.with_uprobes) == (500_000_000, False)
    assert request.case_ids == ("kernel/gemv_f16/m1536-k576/f16", "kernel/gemv_f16/m2048-k2048/f16")


def test_the_opencl_backend_is_set_up(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a processor flash attention is off there, for it is compiled for half a minute in every process."""

    @dataclass
    class Device:
        is_cpu: bool = True

    @dataclass
    class Backend:
        device: Device = field(default_factory=Device)

    asked: list[Any] = []

    def set_up(*arguments: Any) -> Backend:
        asked.append(arguments[1])
        return Backend()

    monkeypatch.setattr("perfsuite.measure.opencl_setup.set_up_opencl", set_up)
    main(["fidelity", "--backend", "opencl", "--opencl-platform", "Intel"])
    (request,) = recorder.requests
    assert asked == ["Intel"]
    assert isinstance(request.opencl, Backend)
    assert not request.workload.settings.flash_attn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "nokia3310"], "--device=nokia3310: no such device; known are "),
        (["--threads", "0"], "--threads=0: expected 1 or more"),
        (["--rounds", "0"], "--rounds=0: expected 1 or more"),
        (["--processes", "-1"], "--processes=-1: expected 1 or more"),
        (["--kernel-budget", "0"], "--kernel-budget=0: expected seconds above 0"),
        (["--kernel-budget", "inf"], "--kernel-budget=inf: expected seconds above 0, 86400 at most"),
        (["--kernel-budget", "1e308"], "--kernel-budget=1e+308: expected seconds above 0, 86400 at most"),
        (["--kernel-budget", "nan"], "--kernel-budget=nan: expected seconds above 0"),
        (["--phases-only", "--kernel", "gemm"], "--kernel=gemm: no kernels are measured; expected --kernels-only"),
        (["--operators-only", "--kernel", "gemm"], "--kernel=gemm: no kernels are measured"),
        (["--phases-only", "--opencl-platform", "pocl"], "--opencl-platform=pocl: nothing runs on OpenCL"),
        (["--opencl-platform", "x"], "OpenCL: expected a platform named like 'x'"),
        (["--kernel", "gemx"], "--kernel=gemx: no kernel's case id holds this; `kernel/gemm/m576-n128-k576/f32` is"),
        (["--scenario", "long"], "scenario 'long' is unknown"),
    ],
)
def test_mistakes_are_one_line(recorder: Recorder, refused: Refused, arguments: list[str], message: str) -> None:
    """What cannot be measured is told before anything is."""
    assert message in refused(["fidelity", *arguments])
    assert recorder.requests == []
