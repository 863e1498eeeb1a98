"""The options of a run: what they resolve to, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite import errors
from perfsuite.errors import OpenClError
from perfsuite.experiments.engine_runs import graph_settings
from perfsuite.experiments.run_config import OutputRequest
from perfsuite.measure.plan import LlamaPlan
from perfsuite.plugin.options import resolve_config
from perfsuite.workload.prompts import prompts_scenario
from tests.fake_device import FakeDevice, HostRuns
from tests.fake_opencl import SCENARIO, FakeOpenCl

from ..conftest import STORED_MODEL

MODEL = "--model=smollm2-135m-l2-q8_0"


@pytest.mark.parametrize(
    ("arguments", "writes_report", "history"),
    [
        ((), True, ".perfsuite/history"),
        (("--perf-report=off",), False, ".perfsuite/history"),
        (("--perf-report=on", "--perf-history=nightly"), True, "nightly"),
        (("--perf-history=off",), True, None),
    ],
)
def test_what_was_asked_for(
    pytester: pytest.Pytester,
    fake_device: FakeDevice,
    arguments: tuple[str, ...],
    writes_report: bool,
    history: str | None,
) -> None:
    config = pytester.parseconfig("--device=host", MODEL, *arguments)
    outputs = resolve_config(config).outputs
    folder = None if history is None else Path(config.rootpath) / history
    assert outputs == OutputRequest(writes_report=writes_report, history=folder)


@pytest.mark.parametrize(
    ("arguments", "lengths"),
    [
        (("--n-prompt=7",), (7, 24, 0)),
        (("--n-gen=3", "--n-depth=16"), (64, 3, 16)),
        (("--scenario=p5-g6-d8", "--n-gen=2"), (5, 2, 8)),
        ((), (64, 24, 0)),
    ],
)
def test_lengths_are_those_of_llama_bench(
    pytester: pytest.Pytester, fake_device: FakeDevice, arguments: tuple[str, ...], lengths: tuple[int, int, int]
) -> None:
    scenario = resolve_config(pytester.parseconfig("--device=host", MODEL, *arguments)).workload.scenario
    assert (scenario.n_prompt, scenario.n_gen, scenario.n_depth) == lengths


def test_settings_are_those_of_llama_bench(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Types of the cache and the size of a chunk are the workload's, and what a baseline is known by."""
    asked = ("--cache-type-k=Q8_0", "--cache-type-v=q4_0", "--ubatch-size=32")
    config = resolve_config(pytester.parseconfig("--device=host", MODEL, *asked))
    assert (config.workload.settings.type_k, config.workload.settings.type_v) == ("q8_0", "q4_0")
    assert config.workload.n_ubatch == 32
    assert graph_settings(config)["n_ubatch"] == "32"
    assert "n_ubatch" not in graph_settings(resolve_config(pytester.parseconfig("--device=host", MODEL)))


FOREIGN = "is an address, expected a folder of this machine, *s3://BUCKET/PREFIX*"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--device=toaster"], "--device=toaster: no such device; known are host*"),
        (["--model=llama-9-q8_0"], "*llama-9*"),
        (["--model=cut.gguf"], "*cut.gguf*"),
        (["--n-prompt=-1"], "*--n-prompt=-1: expected 0 to 9999999 tokens"),
        (["--cache-type-k=q8_O"], "*--cache-type-k=q8_o: is not a type of ggml's; *; did you mean q8_0[?]"),
        (["--backend=opnecl"], "*--backend: invalid choice: 'opnecl' *; did you mean opencl[?]"),
        (["--benchmark-skip"], "*--benchmark-skip: skips every case*"),
        (["--perf-address=tcp:pi"], "--perf-address=tcp:pi: *accepted are local, ssh:*adb*"),
        (["--perf-dir=text.gguf/run"], "*text.gguf/run*cannot be written*choose --perf-dir*"),
        (["--perf-inject=MUL_MAT"], "*--perf-inject=MUL_MAT: expected OPERATOR=RATIO*"),
        (["--perf-inject=MUL_MAT=1", "--baseline=record"], "*slowed down on purpose*"),
        (["--perf-sweep=depht"], "*--perf-sweep=depht: 'depht' is unknown; *; did you mean depth[?]"),
        (["-o", "perf_margin=wide"], "*perf_margin = wide*"),
        (["--perf-history=https://farm/history"], f"*--perf-history=https://farm/history: {FOREIGN}"),
        (
            ["--baseline=record", "--baseline-dir=text.gguf/baselines"],
            "*/text.gguf/baselines: cannot be written (Not a directory); choose --baseline-dir",
        ),
        (["--against-args=thread=2"], "*--against-args=thread=2: accepted are *; did you mean threads[?]"),
        (["--against-args=threads=1", "--baseline=record"], "*--baseline=record: pairs compare two sides*"),
        (["--lora-rank=8", "--perf-overhead"], "*--lora-rank=8: --perf-overhead: runs a model alone; leave out one *"),
        (["--parallel=257"], "*--parallel=257: expected an integer from 1 to 256"),
        (["--parallel=2", "--perf-trace"], "*--parallel=2: --perf-trace: follows one token after the other; leave *"),
        (["--parallel=9", "--ubatch-size=8"], "*--ubatch-size=8: a decode step has 9 tokens, expected 9 or more"),
        (["--draft=ngram:4:1.5"], "*--draft=ngram:4:1.5: expected MODEL|ngram*"),
        (["--draft=ngram", "--parallel=2"], "*--draft=ngram: --parallel: a draft runs ahead of one sequence; leave *"),
        (["--draft=ngram", "--n-gen=0"], "*--draft=ngram: p64-g0 generates nothing; expected tokens to draft"),
        (["--draft=tinyllama-1.1b-q4_0"], "*--draft=tinyllama-1.1b-q4_0: has a vocabulary of 32000, expected *49152"),
        (["--mmproj=clip"], "*--mmproj=clip: is neither a path nor a name of the catalogue; expected FILE.gguf or *"),
        (["--mmproj=tiny-clip-f16", "--perf-trace"], "*--mmproj=tiny-clip-f16: --perf-trace: a text is followed, *"),
    ],
)
def test_a_mistake_is_one_line_before_anything_is_measured(
    pytester: pytest.Pytester, fake_device: FakeDevice, arguments: list[str], line: str
) -> None:
    """It names the option, its value and what is expected, and no folder is made of what it names."""
    (pytester.path / "text.gguf").write_text("not a model")
    (pytester.path / "cut.gguf").write_bytes(b"GGUF\x03\x00\x00\x00\x01")
    result = pytester.runpytest_inprocess("--device=host", MODEL, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {line}" if "invalid choice" not in line else line])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()
    assert fake_device.plans == []
    assert {each.name for each in pytester.path.iterdir()} <= {"text.gguf", "cut.gguf"}


def test_a_history_may_lie_on_s3(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """What speaks to it is not asked before there is a run to keep; that it is not installed is reported at once."""
    config = pytester.parseconfig("--device=host", MODEL, "--perf-history=s3://farm/night/")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errors, "find_spec", lambda name: name)
        assert resolve_config(config).outputs.history == "s3://farm/night"
        patch.setattr(errors, "find_spec", lambda _: None)
        with pytest.raises(pytest.UsageError, match=r"needs obstore, .*pip install 'perfsuite\[s3\]'"):
            resolve_config(config)


#: What each run has besides.
USUAL = ("-k", "test_phase", "--perf-replicates=5")


def refusal(runs: HostRuns, *arguments: str) -> str:
    result = runs(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    return next(line for line in result.stderr.lines if line.startswith("ERROR: "))


@pytest.fixture
def prompts(pytester: pytest.Pytester) -> Path:
    path = pytester.path / "prompts.txt"
    path.write_text("40\n900\n64\n")
    return path


# ---- prompts -----------------------------------------------------------------------------------------------------


def test_each_process_runs_all_prompts(runs: HostRuns, prompts: Path) -> None:
    """The file decides the prompts in their order, the scenario the generation; each is run once in a process."""
    runs(f"--prompts={prompts}", "--scenario=p8-g24")
    plans = [plan for plan in runs.device.plans if isinstance(plan, LlamaPlan)]
    assert len(plans) == 5
    assert {plan.prompt_lengths for plan in plans} == {(40, 900, 64)}
    assert {(plan.n_prompt, plan.n_gen, plan.n_batch, plan.n_repetitions) for plan in plans} == {(64, 24, 900, 1)}
    assert {plan.n_ctx for plan in plans} == {1024}


def test_prompts_name_the_workload(runs: HostRuns, prompts: Path) -> None:
    """Cases are of the prompts, by their number and a digest, so that other prompts have other baselines."""
    runs("--collect-only", "--prompts=prompts.txt")
    name = prompts_scenario((40, 900, 64), 24).name
    result = runs(f"--prompts={prompts}")
    result.stdout.fnmatch_lines([f"perfsuite: {STORED_MODEL}/{name}, *"])
    assert f"phase/{STORED_MODEL}/{name}/decode" in {case["id"] for case in runs.plain()["cases"]}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--perf-sweep=depth"], "--perf-sweep"),
        (["--against-args=threads=1"], "--against"),
        (["--backend=opencl"], "--backend=opencl"),
    ],
)
def test_prompts_run_on_their_own(
    arguments: list[str], told: str, runs: HostRuns, fake_opencl: FakeOpenCl, prompts: Path
) -> None:
    line = refusal(runs, f"--prompts={prompts}", *arguments)
    assert line == f"ERROR: --prompts={prompts}: {told}: runs on its own; leave out one or the other"
    assert runs.device.plans == fake_opencl.platforms == []


@pytest.mark.parametrize("text", [None, "0\n"])
def test_a_file_that_holds_no_prompts_is_told(text: str | None, runs: HostRuns, prompts: Path) -> None:
    """A file that is missing, empty or no list of prompts is one line with its path."""
    prompts.unlink() if text is None else prompts.write_text(text)
    assert str(prompts) in refusal(runs, f"--prompts={prompts}")
    assert runs.device.plans == []


# ---- OpenCL ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("cpu", None, False),
        ("cpu", "on", True),
        ("gpu", None, True),
        ("gpu", "off", False),
        (None, None, True),
    ],
)
def test_flash_attention_is_off_where_opencl_runs_on_a_processor(
    kind: str | None, given: str | None, expected: bool, runs: HostRuns, fake_opencl: FakeOpenCl
) -> None:
    flash_attn = [f"--perf-flash-attn={given}"] if given else []
    if kind is None:
        runs(*flash_attn)
        plans = [plan for plan in runs.device.plans if isinstance(plan, LlamaPlan)]
    else:
        fake_opencl.kind = kind
        runs("--collect-only", "--backend=opencl", f"--scenario={SCENARIO}", *flash_attn)
        plans = fake_opencl.learnt_plans
    assert {plan.flash_attn for plan in plans} == {expected}


def test_the_platform_is_the_one_that_is_named(runs: HostRuns, fake_opencl: FakeOpenCl) -> None:
    """The option chooses the platform of the engine's backend; a platform that is not there is one line."""
    runs("--collect-only", "--backend=opencl", f"--scenario={SCENARIO}", "--perf-opencl-platform=POCL")
    assert fake_opencl.platforms == ["POCL"]
    fake_opencl.set_up_error = OpenClError("no platform like 'POCL'")
    assert refusal(runs, "--backend=opencl") == "ERROR: no platform like 'POCL'"
