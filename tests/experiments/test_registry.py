"""Experiments of the suite's own and of other packages, the example in docs/examples among them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from perfsuite.experiments.registry import GROUP
from perfsuite.measure.plan import LlamaPlan, Plan
from perfsuite.testing.workers import replace_workers
from tests.fake_device import FakeDevice

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs/examples/thread_scaling"
ASKED = ("--device=host", "--model=smollm2-135m-l2-q8_0", "--threads=3", "--baseline=off", "--perf-dir=run")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the example as its pyproject.toml says; return where its entry points are."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    place = tmp_path / "installed"
    about = place / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    shutil.copy(EXAMPLE / "thread_scaling.py", place)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    points = "\n".join(f"{name} = {value}" for name, value in project["entry-points"][GROUP].items())
    (about / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\nbroken = thread_scaling:nothing\n")
    monkeypatch.syspath_prepend(place)
    return about / "entry_points.txt"


@pytest.fixture
def scaled_device(fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    """A device on which two threads take 0.6 of the time of one, and a third one slows them down by a half."""

    def run(plan: Plan, **named: Any) -> dict[str, Any]:
        if isinstance(plan, LlamaPlan):
            fake_device.slowdown = {"": {1: 1.0, 2: 0.6, 3: 0.9}[plan.n_threads]}
        return fake_device.run(plan, **named)

    replace_workers(monkeypatch, run)
    return fake_device


@pytest.mark.usefixtures("installed", "scaled_device")
def test_an_experiment_of_another_package_is_judged(pytester: pytest.Pytester) -> None:
    named = ("--perf-experiment=thread-scaling", "-k", "thread-scaling", "-rA")
    outcome = pytester.runpytest_inprocess(*ASKED, *named)
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(["slow: thread-scaling/*/siso/3: 1.?? of the time that 2 threads take"])


@pytest.mark.usefixtures("installed")
def test_an_experiment_that_is_not_there_or_cannot_be_loaded_is_one_line(
    fake_device: FakeDevice, pytester: pytest.Pytester
) -> None:
    """A fault of another package is no traceback of the suite's."""
    outcome = pytester.runpytest_inprocess(*ASKED, "--perf-experiment=nothing-like-it")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: --perf-experiment=nothing-like-it: no installed package brings it; known: *"])
    outcome = pytester.runpytest_inprocess(*ASKED, "--perf-experiment=broken")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: --perf-experiment=broken: thread_scaling:nothing failed: *"])
