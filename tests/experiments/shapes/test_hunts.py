"""Cases of ``--perf-shapes`` in whole runs of the plugin, over a simulated device."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis.strategies import DataObject

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.experiments.shapes.command_sweep import add_parser, sweep_setting
from perfsuite.experiments.shapes.hunt import Hunt
from perfsuite.experiments.shapes.hunts import sweep_command
from perfsuite.experiments.shapes.judge import ShapeJudge
from perfsuite.experiments.shapes.request import TimeShares
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT
from perfsuite.testing.planted_kernels import Fault, plant
from perfsuite.testing.shape_meters import SimulatedMeters
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject
from tests.experiments.shapes.conftest import FakeSubjects
from tests.fake_device import HostRuns
from tests.synthetic_shapes import ggml, tiled


def slow(case: ShapeCase, property: ShapeProperty = ShapeProperty.PADDING) -> ShapeVerdict:
    """Return the verdict on a case that takes many times as long as any other."""
    return ShapeJudge(SimulatedMeters(slowdowns=((lambda each: each == case, 8.0),))).judge(property, case)


@pytest.mark.parametrize(
    ("case", "property", "sizes"),
    [
        (tiled("gemm/m1-n1-k33/f16", tile=16, vector=4), ShapeProperty.PADDING, "--m 1 --n 1 --k 33:64"),
        (tiled("gemm/m64-n64-k32/f32"), ShapeProperty.GROWTH, "--m 64:128 --n 64 --k 32"),
        (tiled("gemv/n3-k32/q4_0"), ShapeProperty.CORRECT, "--n 3:67 --k 32"),
        (ggml("gemv/n65-k256/q4_k"), ShapeProperty.PADDING, "--n 65:96 --k 256"),
        (
            tiled("attention/heads4-kvheads2-head65-context3/f32"),
            ShapeProperty.PADDING,
            "--heads 4 --kv-heads 2 --head-size 65:96 --context 3",
        ),
    ],
)
def test_the_sweep_runs_to_the_shape_that_was_compared(case: ShapeCase, property: ShapeProperty, sizes: str) -> None:
    verdict = slow(case, property)
    command = sweep_command(verdict, "host")
    assert command.endswith(sizes)
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    swept = sweep_setting(parser.parse_args(shlex.split(command)[1:]), n_compute_units=2).cases
    against = ShapeCase.from_id(verdict.against_id or case.case_id)
    differ = [each for each in case.operation.dimensions if case.shape.of(each) != against.shape.of(each)]
    assert {case, against} <= set(swept) or (case in swept and len(differ) > 1)


def test_the_command_names_all_that_was_measured() -> None:
    """Sizes between whole blocks do not exist."""
    verdict = slow(tiled("bmm/b32-m1-n33-k128/f16"))
    assert "against padded n64, margin 25 %; in 2 fresh processes" in verdict.reason
    assert sweep_command(verdict, "host") == (
        "perfsuite sweep bmm --device host --subject tiled --type f16 --tile 64 --vector 8 "
        "--b 32 --m 1 --n 33:64 --k 128"
    )
    command = sweep_command(verdict, "host", platform="Intel(R) OpenCL")
    assert shlex.split(command)[4:7] == ["host", "--opencl-platform", "Intel(R) OpenCL"]
    case_id, against_id = (ggml(f"gemv/n64-k{k}/q4_k").case_id for k in (256, 512))
    blocks = replace(verdict, property=ShapeProperty.GROWTH, case_id=case_id, against_id=against_id)
    assert sweep_command(blocks, "host").endswith("--subject ggml-cpu --type q4_k --n 64 --k 256:512:256")


#: What each run has besides.
USUAL = ("--threads=2", "-k", "shape-hunt or shape-kept")

_GEMM = ("--perf-shapes=gemm", "--perf-shape-types=f32", "--perf-shape-profile=quick")
_FROM_2 = "--perf-shape-bounds=k=2:512"
_PADDING, _CORRECT = "shape-hunt/tiled/gemm/padding", "shape-hunt/tiled/gemm/correct"
_FOUND = "gemm/m1-n1-k33/f32/tile8-vector1"


def slow_k(case: ShapeCase) -> bool:
    return case.shape.of("k") % 32 == 1


def test_there_is_a_case_for_each_subject_operation_and_property(runs: HostRuns, subjects: FakeSubjects) -> None:
    out = runs("--perf-shapes=all", "--perf-shape-subjects=all", "--collect-only", "-q").stdout.str()
    assert out.count("[shape-hunt/") == 4 * (3 * 4 + 1)
    assert "[shape-hunt/ggml-cpu/gemv/calibrated]" in out
    assert "[shape-hunt/tiled/attention/padding]" in out
    assert subjects.opened == {}


@pytest.mark.long
def test_sound_kernels_pass(runs: HostRuns, subjects: FakeSubjects) -> None:
    result = runs(*_GEMM, "-k", "hunt and (padding or correct)", "--hypothesis-seed=5")
    assert result.ret == 0
    assert runs.outcomes() == {"pass"}
    reason = runs.cases()[_PADDING]["reason"]
    assert "shapes; worst ratio 1." in reason
    assert "could not be judged" not in reason
    assert (list(subjects.opened), subjects.n_closed) == ([Subject.TILED], 1)
    result.stdout.fnmatch_lines(["perfsuite: shapes of gemm by tiled, profile quick*--hypothesis-seed=5"])
    subjects.meters.slowdowns = [(slow_k, 1.6)]
    assert runs(*_GEMM, "-k", "hunt and padding", "--perf-margin=shape-hunt=0.9").ret == 0


def test_a_slow_path_is_found_and_shrunk(runs: HostRuns, subjects: FakeSubjects) -> None:
    subjects.meters.slowdowns = [(slow_k, 3.0)]
    result = runs(*_GEMM, _FROM_2, "-k", "hunt and (padding or correct)", "--hypothesis-seed=1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    case = runs.cases()[_PADDING]
    assert case["outcome"] == "regressed"
    assert case["reason"].startswith(f"{_FOUND}: +")
    assert "--hypothesis-seed=1 -k shape-hunt/tiled/gemm/padding" in case["reason"]
    assert "measure again: perfsuite sweep gemm --device host --subject tiled" in case["reason"]
    assert case["change_ratio"] > 1.5
    assert "Traceback" not in result.stdout.str()
    result.stdout.fnmatch_lines(["*--baseline=record keeps *baselines/host/shapes*"])
    assert runs.cases()[_CORRECT]["outcome"] == "pass"


@pytest.mark.long
def test_equal_seeds_find_equal_shapes(runs: HostRuns, subjects: FakeSubjects) -> None:
    subjects.meters = SimulatedMeters()
    first = runs(*_GEMM, "-k", "hunt and padding")
    seed = first.stdout.str().split("--hypothesis-seed=")[1].split()[0]
    case = runs.cases()[_PADDING]
    subjects.meters = SimulatedMeters()
    runs(*_GEMM, "-k", "hunt and padding", f"--hypothesis-seed={seed}")
    assert runs.cases()[_PADDING] == case


@pytest.mark.long
def test_what_is_recorded_is_tried_first_from_then_on(runs: HostRuns, subjects: FakeSubjects) -> None:
    subjects.meters.slowdowns = [(slow_k, 3.0)]
    runs(*_GEMM, _FROM_2, "-k", "padding", "--hypothesis-seed=1", "--baseline=record")
    kept = runs.pytester.path / "baselines" / "host" / "shapes" / "tiled-gemm.json"
    assert _FOUND in json.dumps(json.loads(kept.read_text()))
    kept_case = f"shape-kept/tiled/{_FOUND}/padding"
    runs(*_GEMM, _FROM_2, "-k", "padding", "--hypothesis-seed=1")
    assert list(runs.cases()) == [kept_case, _PADDING]
    assert runs.cases()[kept_case]["outcome"] == "regressed"
    subjects.meters.slowdowns = ()
    assert runs(*_GEMM, _FROM_2, "-k", "kept").ret == 0
    assert runs.cases()[kept_case]["outcome"] == "improved"
    assert "shape-kept" not in runs(*_GEMM, "--collect-only", "-q", "--baseline=off").stdout.str()


@pytest.mark.parametrize(
    ("factor", "when", "outcome", "reason"),
    [
        (3.0, lambda hunt: hunt.failing is not None, "regressed", "broken off at gemm/m"),
        (1.0, lambda hunt: len(hunt.judged) == 3, "invalid", "broken off after 3 shapes, none of which fails"),
    ],
    ids=["while it shrinks", "before it found anything"],
)
def test_an_interrupted_hunt_keeps_nothing_and_tells_what_it_had(
    runs: HostRuns,
    subjects: FakeSubjects,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    factor: float,
    when: Callable[[Hunt], bool],
    outcome: str,
    reason: str,
) -> None:
    """What was not shrunk to its end is no shape for the baselines, but no finding to forget either."""
    subjects.meters.slowdowns = [(slow_k, factor)]
    example = Hunt.example

    def interrupted(hunt: Hunt, data: DataObject) -> None:
        if when(hunt):
            raise KeyboardInterrupt
        example(hunt, data)

    monkeypatch.setattr(Hunt, "example", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runs(*_GEMM, _FROM_2, "-k", "hunt and (padding or growth)", "--hypothesis-seed=1", "--baseline=record")
    assert not (runs.pytester.path / "baselines" / "host" / "shapes").exists()
    (case,) = runs.cases().values()
    assert case["outcome"] == outcome
    told = f"{reason}.*; hunt again: pytest --device=host "
    assert re.match(told, case["reason"])
    if outcome == "regressed":
        assert re.search(told, capsys.readouterr().out.replace("\n", " "))


def test_a_finding_in_other_kernels_names_no_sweep_of_the_packages(
    runs: HostRuns, subjects: FakeSubjects, tmp_path: Path
) -> None:
    """A sweep has no other kernels, and would show nothing."""
    (tmp_path / "tiled.cl").write_text("")
    subjects.meters.slowdowns = [(slow_k, 3.0)]
    runs(*_GEMM, "-k", "hunt and padding", f"--perf-kernels={tmp_path}", "--perf-margin=shape-hunt=0.3")
    reason = runs.cases()[_PADDING]["reason"]
    assert "measure again" not in reason
    assert f"--perf-kernels={tmp_path} --threads=2 --perf-margin=shape-hunt=0.3 --hypothesis-seed=" in reason


@pytest.mark.long
def test_what_a_reviewer_accepted_is_no_finding_of_a_hunt(runs: HostRuns, subjects: FakeSubjects) -> None:
    """A hunt fails only on what is worse than was accepted of its operation and type, and tells what it let pass."""
    asked = (*_GEMM, _FROM_2, "--perf-shape-subjects=ggml-cpu", "-k", "padding")
    subjects.meters.slowdowns = [(slow_k, 3.0)]
    runs(*asked, "--hypothesis-seed=1", "--baseline=record")
    kept = runs.pytester.path / "baselines" / "host" / "shapes" / "ggml-cpu-gemm.json"
    kept.write_text(kept.read_text().replace('"accepted_ratio": null', '"accepted_ratio": 3.0'))
    assert runs(*asked, "--hypothesis-seed=2").ret == 0
    assert runs.outcomes() == {"pass"}
    assert "of them fail within what was accepted" in runs.cases()["shape-hunt/ggml-cpu/gemm/padding"]["reason"]
    subjects.meters.slowdowns = [(slow_k, 6.0)]
    runs(*asked, "--hypothesis-seed=2")
    assert runs.outcomes() == {"regressed"}


def test_a_hunt_that_could_judge_nothing_is_invalid(runs: HostRuns, subjects: FakeSubjects) -> None:
    """Rejecting everything is no PASS, and the reason says what was in the way."""
    subjects.meters.problem = lambda case: "too large for the device"
    assert runs(*_GEMM, "-k", "hunt and correct").ret == NOTHING_JUDGED_EXIT
    case = runs.cases()[_CORRECT]
    assert case["outcome"] == "invalid"
    told = "no shape could be judged; .* could not be judged, such as: too large for the device"
    assert re.fullmatch(told, case["reason"])


@pytest.mark.parametrize(
    ("error", "code"),
    [(OpenClError("no OpenCL"), NOTHING_JUDGED_EXIT), (MeasurementError("no worker"), pytest.ExitCode.TESTS_FAILED)],
)
def test_a_subject_that_cannot_run_is_told(runs: HostRuns, subjects: FakeSubjects, error: Exception, code: int) -> None:
    """Its hunts are INVALID with the reason; the run fails unless the device merely lacks OpenCL."""
    subjects.error = error
    assert runs(*_GEMM).ret == code
    assert {(each["outcome"], each["reason"]) for each in runs.cases().values()} == {("invalid", str(error))}


def test_a_process_that_dies_later_ends_the_hunt(
    runs: HostRuns, subjects: FakeSubjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no fault of a shape is not shrunk."""

    fail = Mock(side_effect=MeasurementError("the worker was killed"))
    monkeypatch.setattr("perfsuite.testing.shape_meters.SimulatedMeter.verify", fail)
    runs(*_GEMM, "-k", "hunt and correct")
    case = runs.cases()[_CORRECT]
    assert (case["outcome"], case["reason"]) == ("invalid", "the worker was killed")


@pytest.mark.measures
def test_a_planted_slow_path_is_found_on_a_real_device(pytester: pytest.Pytester) -> None:
    """The suite's own kernels, slowed down at k % 32 = 1, fail at the smallest such k on this machine's OpenCL."""
    kernels = plant(pytester.path, Fault.SLOW_K)
    options = ("--device=host", "--model=smollm2-135m-l2-q8_0", "--perf-dir=run", "--perf-shape-types=f32")
    hunt = ("--perf-shapes=gemm", "--perf-shape-profile=quick", f"--perf-kernels={kernels}", "--hypothesis-seed=1")
    bounds = "--perf-shape-bounds=m=1:8,n=1:64,k=2:128"
    ended = pytester.runpytest_subprocess(*options, *hunt, bounds, "-k", "hunt and padding", timeout=240)
    (case,) = json.loads((pytester.path / "run" / "run.json").read_text())["cases"]
    if case["outcome"] == "invalid":
        pytest.skip(case["reason"])
    assert case["outcome"] == "regressed", ended.stdout.str()
    assert "-k33/f32/" in case["reason"]


def test_what_a_hunt_leaves_goes_to_those_that_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 s for three, the first may take 20; it took 10, so that the second may take 25; shrinking counts not."""
    now = [100.0]
    monkeypatch.setattr("perfsuite.experiments.shapes.request.time.monotonic", lambda: now[0])
    shares = TimeShares(left_s=60.0, n_left=3)
    assert shares.start() == 120.0
    now[0] = 110.0
    shares.finish()
    assert shares.start() == 135.0
    now[0] = 210.0
    shares.finish()
    assert shares.start() == 235.0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--perf-shapes=gemm", "--perf-shape-bounds=k=1:9", "--perf-shape-types=q4_0"],
            "gemm has no k within its bounds that is in whole blocks of q4_0",
        ),
        (
            ["--perf-shapes=attention", "--perf-shape-bounds=heads=3:3,kvheads=2:2"],
            "attention has no heads within its bounds that are a multiple of kvheads",
        ),
        (["--perf-shapes=gemm", "-p", "no:hypothesispytest"], "needs Hypothesis' own plugin"),
    ],
)
def test_what_makes_no_sense_is_refused(
    runs: HostRuns, subjects: FakeSubjects, arguments: list[str], told: str
) -> None:
    result = runs(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert told in result.stderr.str()
    assert "Traceback" not in result.stderr.str()
    assert subjects.opened == {}


def test_other_kernels_are_those_of_the_tiled_subject(runs: HostRuns, subjects: FakeSubjects, tmp_path: Path) -> None:
    (tmp_path / "tiled.cl").write_text("")
    options = ("--perf-shapes=gemm", "--perf-shape-types=f32", f"--perf-kernels={tmp_path}", "-k", "hunt and correct")
    result = runs(*options)
    result.stdout.fnmatch_lines([f"perfsuite: shapes of gemm by tiled from {tmp_path}, profile default *"])
    ((_, arguments),) = subjects.opened.items()
    assert arguments["kernels_dir"] == tmp_path
