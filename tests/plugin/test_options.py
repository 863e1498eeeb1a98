"""The options of a run: what they resolve to, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import OpenClError
from perfsuite.measure.plan import LlamaPlan
from perfsuite.workload.prompts import prompts_scenario

from ..conftest import STORED_MODEL
from .conftest import FakeDevice
from .fake_opencl import SCENARIO, FakeOpenCl


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run the phases of the small model."""
    own = ("--perf-dir=run", "-p", "no:cacheprovider", "-k", "test_phase", "--perf-replicates=5")
    return pytester.runpytest_inprocess("--device=host", f"--model={STORED_MODEL}", *own, *arguments)


def plain_run(pytester: pytest.Pytester) -> dict[str, Any]:
    """Return the run's file."""
    plain: dict[str, Any] = json.loads((pytester.path / "run" / "run.json").read_text())
    return plain


def refusal(pytester: pytest.Pytester, *arguments: str) -> str:
    """Run what must be refused, and return its line."""
    result = run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    return next(line for line in result.stderr.lines if line.startswith("ERROR: "))


@pytest.fixture
def prompts(pytester: pytest.Pytester) -> Path:
    """Return a file of three prompts."""
    path = pytester.path / "prompts.txt"
    path.write_text("40\n900\n64\n")
    return path


# ---- prompts -----------------------------------------------------------------------------------------------------


def test_each_process_runs_all_prompts(pytester: pytest.Pytester, fake_device: FakeDevice, prompts: Path) -> None:
    """The file decides the prompts in their order, the scenario the generation; each is run once in a process."""
    run(pytester, f"--prompts={prompts}", "--scenario=p8-g24")
    plans = [plan for plan in fake_device.plans if isinstance(plan, LlamaPlan)]
    assert len(plans) == 5
    assert {plan.prompt_lengths for plan in plans} == {(40, 900, 64)}
    assert {(plan.n_prompt, plan.n_gen, plan.n_batch, plan.n_repetitions) for plan in plans} == {(64, 24, 900, 1)}
    assert {plan.n_ctx for plan in plans} == {1024}


def test_prompts_name_the_workload(pytester: pytest.Pytester, fake_device: FakeDevice, prompts: Path) -> None:
    """Cases are of the prompts, by their number and a digest, so that other prompts have other baselines."""
    run(pytester, "--collect-only", "--prompts=prompts.txt")
    name = prompts_scenario((40, 900, 64), 24).name
    result = run(pytester, f"--prompts={prompts}")
    result.stdout.fnmatch_lines([f"perfsuite: {STORED_MODEL}/{name}, *"])
    assert f"phase/{STORED_MODEL}/{name}/decode" in {case["id"] for case in plain_run(pytester)["cases"]}


def test_what_lies_in_the_cache_stays_there(pytester: pytest.Pytester, fake_device: FakeDevice, prompts: Path) -> None:
    """A scenario with a depth keeps it before each prompt, and the name tells it."""
    result = run(pytester, f"--prompts={prompts}", "--scenario=p8-g24-d100")
    plans = [plan for plan in fake_device.plans if isinstance(plan, LlamaPlan)]
    assert {(plan.n_depth, plan.n_ctx) for plan in plans} == {(100, 1024)}
    result.stdout.fnmatch_lines([f"perfsuite: {STORED_MODEL}/prompts-3-*-g24-d100, *"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--perf-sweep=depth"], "--perf-sweep"),
        (["--perf-fidelity"], "--perf-fidelity"),
        (["--against-args=threads=1"], "--against"),
        (["--against-model=smollm2-135m-l2-q4_0"], "--against"),
        (["--backend=opencl"], "--backend=opencl"),
        (["--backend=opencl", "--perf-fidelity"], "--perf-fidelity, --backend=opencl"),
    ],
)
def test_prompts_run_on_their_own(
    arguments: list[str],
    told: str,
    pytester: pytest.Pytester,
    fake_device: FakeDevice,
    fake_opencl: FakeOpenCl,
    prompts: Path,
) -> None:
    """What has other workloads or other sides is refused by its name, before anything runs."""
    line = refusal(pytester, f"--prompts={prompts}", *arguments)
    assert line.startswith(f"ERROR: --prompts={prompts}: runs on its own; leave out ")
    assert line.endswith(f"leave out {told}")
    assert fake_device.plans == fake_opencl.platforms == []


@pytest.mark.parametrize("text", [None, "", "0\n", "ten words of nothing\n"])
def test_a_file_that_holds_no_prompts_is_told(
    text: str | None, pytester: pytest.Pytester, fake_device: FakeDevice, prompts: Path
) -> None:
    """A file that is missing, empty or no list of prompts is one line with its path."""
    prompts.unlink() if text is None else prompts.write_text(text)
    assert str(prompts) in refusal(pytester, f"--prompts={prompts}")
    assert fake_device.plans == []


# ---- OpenCL ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("cpu", None, False),
        ("cpu", "on", True),
        ("cpu", "off", False),
        ("gpu", None, True),
        ("gpu", "off", False),
        (None, None, True),
        (None, "off", False),
    ],
)
def test_flash_attention_is_off_where_opencl_runs_on_a_processor(
    kind: str | None,
    given: str | None,
    expected: bool,
    pytester: pytest.Pytester,
    fake_device: FakeDevice,
    fake_opencl: FakeOpenCl,
) -> None:
    """Unless the option says so, it is on everywhere else."""
    flash_attn = [f"--perf-flash-attn={given}"] if given else []
    if kind is None:
        run(pytester, *flash_attn)
        plans = [plan for plan in fake_device.plans if isinstance(plan, LlamaPlan)]
    else:
        fake_opencl.kind = kind
        run(pytester, "--collect-only", "--backend=opencl", f"--scenario={SCENARIO}", *flash_attn)
        plans = fake_opencl.learnt_plans
    assert {plan.flash_attn for plan in plans} == {expected}


def test_the_platform_is_the_one_that_is_named(
    pytester: pytest.Pytester, fake_device: FakeDevice, fake_opencl: FakeOpenCl
) -> None:
    """The option chooses the platform of the engine's backend; a platform that is not there is one line."""
    run(pytester, "--collect-only", "--backend=opencl", f"--scenario={SCENARIO}", "--perf-opencl-platform=POCL")
    assert fake_opencl.platforms == ["POCL"]
    fake_opencl.set_up_error = OpenClError("no platform like 'POCL'")
    assert refusal(pytester, "--backend=opencl") == "ERROR: no platform like 'POCL'"


def test_the_processor_has_no_opencl(
    pytester: pytest.Pytester, fake_device: FakeDevice, fake_opencl: FakeOpenCl
) -> None:
    """Without --backend=opencl nothing of OpenCL is set up for the engine."""
    run(pytester)
    assert (fake_opencl.platforms, fake_opencl.learnt_plans, fake_opencl.plans) == ([], [], [])
    assert not any(name.startswith("opencl") for name in plain_run(pytester)["fingerprint"]["llama"])
