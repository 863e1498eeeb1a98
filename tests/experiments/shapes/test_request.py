"""The options of hunts."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.experiments.shapes.request import HUNT_BUDGETS, HuntRequest, TimeShares
from perfsuite.experiments.shapes.shape_design import SHAPE_DESIGNS
from perfsuite.workload.shapes.operation_shape import Operation
from perfsuite.workload.shapes.shape_case import Subject
from tests.experiments.shapes.conftest import FakeSubjects
from tests.fake_device import HostRuns

#: What each run has besides.
USUAL = ("--threads=2", "-k", "shape-hunt or shape-kept")


def test_profiles_have_the_names_of_designs() -> None:
    assert set(HUNT_BUDGETS) == set(SHAPE_DESIGNS)
    assert HUNT_BUDGETS["quick"].limit_s == 60.0
    assert HUNT_BUDGETS["default"].told == "500 shapes a hunt, 10 min for all"


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
        (["--perf-shapes=gem"], "--perf-shapes=gem: 'gem' is unknown; accepted are gemm, bmm, gemv, attention, all"),
        (
            ["--perf-shapes=gemm", "--perf-shape-bounds=k=1:9", "--perf-shape-types=q4_0"],
            "gemm has no k within its bounds that is in whole blocks of q4_0",
        ),
        (["--perf-shape-subjects=tiled"], "--perf-shape-subjects: says what shapes are hunted for; give --perf-shapes"),
        (["--perf-shapes=gemm", "--perf-kernels=x"], "--perf-kernels=x: no tiled.cl there"),
        (
            ["--perf-shapes=gemm", "--perf-kernels=x", "--perf-shape-subjects=ggml-cpu"],
            "--perf-kernels=x: sources of tiled, which is not a subject here",
        ),
        (["--perf-shapes=gemm", "--against-args=threads=1"], "leave out --against"),
        (["--perf-shapes=gemm", "--prompts=x"], "leave out --prompts"),
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


def test_hunts_on_no_device_are_refused(pytester: pytest.Pytester) -> None:
    """Running the user's own tests instead would hide that nothing was hunted."""
    result = pytester.runpytest_inprocess("--perf-shape-types=f32")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--perf-shape-types=f32: on which device? Give --device=NAME as well" in result.stderr.str()


def test_the_command_of_a_hunt_repeats_what_was_given() -> None:
    """Values are quoted for a shell, and options that were left out stay so."""
    request = HuntRequest(
        operations=(Operation.GEMV,),
        subjects=(Subject.TILED,),
        types=("f32",),
        bounds={},
        kernels_dir=None,
        profile="quick",
        seed="7",
        given=("--device=host", "--perf-shapes=gemv", "--perf-kernels=my kernels"),
    )
    assert request.command("shape-hunt/tiled/gemv/growth") == (
        "pytest --device=host --perf-shapes=gemv '--perf-kernels=my kernels' --hypothesis-seed=7 "
        "-k shape-hunt/tiled/gemv/growth"
    )
