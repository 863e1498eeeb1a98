"""``perfsuite roofline``, with what is measured replaced."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from perfsuite.cli import main
from perfsuite.errors import MeasurementError, OpenClError, PerfsuiteError
from perfsuite.expectation.roofline.roofline_run import RooflineRun, read_roofline, write_roofline
from perfsuite.experiments.roofline.experiment import RooflineRequest
from perfsuite.measure.plan import LlamaPlan, Plan, ProbePlan
from perfsuite.testing.workers import replace_workers
from tests.command_streams import Refused, Streams
from tests.fake_device import FakeDevice, fake_device
from tests.synthetic_roofline import memory_record, roofline_run, row, survey

__all__ = ["fake_device"]

BENCH = Path(__file__).parents[2] / "data" / "llama-bench.json"
MODEL = "--model=smollm2-135m-l2-q8_0"

RUN = roofline_run(memory=(memory_record(),))


class Recorder:
    def __init__(self) -> None:
        self.requests: list[RooflineRequest] = []
        self.run = RUN

    def record(self, request: RooflineRequest, progress: Callable[[str], None]) -> RooflineRun:
        self.requests.append(request)
        progress("everything")
        return self.run

    @property
    def settings(self) -> list[tuple[str, str]]:
        (request,) = self.requests
        return [(point.sweep, point.setting) for point in (*request.base, *request.sweeps)]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path) -> Recorder:
    found = Recorder()
    monkeypatch.setattr("perfsuite.experiments.roofline.experiment.record_roofline", found.record)
    monkeypatch.chdir(tmp_path)
    return found


def stored(folder: Path, run: RooflineRun = RUN) -> str:
    write_roofline(run, folder / "stored.json")
    return str(folder / "stored.json")


def kept(folder: Path) -> list[Path]:
    return sorted((folder / ".perfsuite" / "rooflines").glob("*.json"))


def test_a_run_is_measured_kept_and_shown(capsys: Streams, recorder: Recorder, tmp_path: Path) -> None:
    assert main(["roofline", MODEL]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Ceilings of host")
    (path,) = kept(tmp_path)
    assert read_roofline(path) == RUN
    assert "roofline: everything\n" in err
    assert f"kept in {path.relative_to(tmp_path)}" in err


def test_json_is_all_that_is_printed(capsys: Streams, recorder: Recorder, tmp_path: Path) -> None:
    assert main(["roofline", MODEL, "--json", f"--plot={tmp_path / 'seen.svg'}", "--output=own/run.json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["device"] == "host"
    assert "seen-bandwidth.svg" in err
    assert read_roofline(tmp_path / "own" / "run.json") == RUN
    assert kept(tmp_path) == []


@pytest.mark.parametrize("failing", ["roofline_plain", "roofline_parts", "draw_roofline"])
def test_a_run_is_kept_before_anything_is_made_of_it(
    capsys: Streams, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """A picture, a table or JSON that fails does not lose what was measured, and is the last line."""
    broken = Mock(side_effect=PerfsuiteError("seen.svg: No space left on device"))
    monkeypatch.setattr(f"perfsuite.experiments.roofline.command_tables.{failing}", broken)
    assert main(["roofline", MODEL, "--plot=seen.svg", *(["--json"] if failing.endswith("plain") else [])]) == 2
    assert [read_roofline(path) for path in kept(tmp_path)] == [RUN]
    out, err = capsys.readouterr()
    assert "seen.svg" in err.splitlines()[-1]
    assert ("Ceilings of host" in out) is (failing == "draw_roofline")


def test_options_reach_the_request(recorder: Recorder) -> None:
    """Without any, a model's operators are measured in one scenario, without the programs of others."""
    assert main(["roofline", "--threads=3"]) == 0
    (request,) = recorder.requests
    (base,) = request.base
    assert (base.workload.prefix, base.n_threads, request.sweeps) == ("smollm2-135m-q8_0/siso", 3, ())
    assert (request.n_processes, request.with_bounds, request.survey.opencl_platform) == (5, False, None)
    assert request.survey.n_threads == 3
    recorder.requests.clear()
    assert main(["roofline", MODEL, "--scenario=p16-g4", "--replicates=3", "--bounds", "--opencl-platform=PoCL"]) == 0
    (request,) = recorder.requests
    assert request.base[0].workload.scenario.name == "p16-g4"
    assert (request.n_processes, request.with_bounds, request.survey.opencl_platform) == (3, True, "PoCL")


def test_sweeps_take_the_place_of_the_base(recorder: Recorder) -> None:
    assert main(["roofline", MODEL, "--sweep=precision", "--sweep=flash", "--sweep=precision"]) == 0
    assert recorder.settings == [
        *(("precision", setting) for setting in ("f16", "q8_0", "q4_k_m")),
        *(("flash", setting) for setting in ("on", "off")),
    ]


def test_an_earlier_run_is_compared(capsys: Streams, recorder: Recorder, tmp_path: Path) -> None:
    slow = roofline_run(row(samples_ns=(200_000_000,) * 3), RUN.rows[1], memory=RUN.memory)
    arguments = ["roofline", "--from", stored(tmp_path, slow)]
    write_roofline(RUN, tmp_path / "earlier.json")
    assert main([*arguments, f"--again={tmp_path / 'earlier.json'}"]) == 0
    assert ": 1 of 2 points agree" in capsys.readouterr().out
    assert main([*arguments, f"--again={tmp_path / 'earlier.json'}", "--json"]) == 0
    assert [each["is_within"] for each in json.loads(capsys.readouterr().out)["again"]] == [False, True]


def _bench_threads(path: Path, n_threads: int) -> Path:
    plain: list[dict[str, Any]] = json.loads(BENCH.read_text())
    path.write_text(json.dumps([{**each, "n_threads": n_threads} for each in plain]))
    return path


@pytest.mark.long
def test_llama_bench_is_placed_under_its_own_threads(capsys: Streams, recorder: Recorder, tmp_path: Path) -> None:
    run = replace(RUN, survey=survey(1, 2))
    for n_threads, peak in ((2, 1600e9), (1, 800e9)):
        bench = _bench_threads(tmp_path / "bench.json", n_threads)
        assert main(["roofline", "--from", stored(tmp_path, run), f"--llama-bench={bench}", "--json"]) == 0
        points = json.loads(capsys.readouterr().out)["points"]
        benched = [each for each in points if each["case"].startswith("llama-bench/smollm2-135m-q8_0/")]
        assert len(benched) == len(points) - 2 == len(json.loads(BENCH.read_text()))
        assert peak / 2 < max(each["peak_flops_per_s"] for each in benched) < peak


def test_llama_bench_with_other_threads_is_refused(refused: Refused, recorder: Recorder, tmp_path: Path) -> None:
    bench = _bench_threads(tmp_path / "bench.json", 7)
    assert "pp16 ran on 7 threads, ceilings are of 2" in refused(
        ["roofline", "--from", stored(tmp_path), f"--llama-bench={bench}"]
    )


def test_a_whole_run_without_opencl(
    capsys: Streams, fake_device: FakeDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From workers to tables and JSON: the processor's roofline is there, and what is missing says why."""
    monkeypatch.chdir(tmp_path)
    fake_device.opencl_error = OpenClError("OpenCL: no platform has a device")
    assert main(["roofline", MODEL, "--threads=2", "--sweep=precision", "--bounds"]) == 0
    out = capsys.readouterr().out
    assert "missing: opencl fp32: OpenCL: no platform has a device" in out
    assert "'the fewer bits a weight has, the higher the intensity of decode': agrees;" in out
    (path,) = kept(tmp_path)
    assert main(["roofline", "--from", str(path), "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert len(plain["points"]) == 9
    assert {each["missing"] for each in plain["ceilings"] if each["processor"] == "opencl"} == {
        "OpenCL: no platform has a device"
    }


def test_ceilings_that_cannot_be_taken_again_lose_nothing(
    capsys: Streams, fake_device: FakeDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured stands under the ceilings that were taken before, and why is reported."""
    monkeypatch.chdir(tmp_path)
    answer = fake_device.run

    def run(plan: Plan, **options: object) -> dict[str, Any]:
        if isinstance(plan, ProbePlan) and any(isinstance(each, LlamaPlan) for each in fake_device.plans):
            raise MeasurementError("probe: no memory")
        return answer(plan, **options)

    replace_workers(monkeypatch, run)
    assert main(["roofline", MODEL, "--threads=2", "--sweep=precision"]) == 0
    assert "the ceilings were not measured again: probe: no memory" in capsys.readouterr().err
    (path,) = kept(tmp_path)
    assert len(read_roofline(path).rows) == 9
