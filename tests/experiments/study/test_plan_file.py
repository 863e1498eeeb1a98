"""Plans of studies in TOML."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.plan_file import StudyTask, TokenLatency, read_plan

HEAD = """schema = 1
[reference]
name = "ref"
accuracies = "ref.json"
[[task]]
name = "arc_easy"
metric = "acc_norm"
chance = 0.25
"""
MODEL = """[[model]]
name = "smollm2-135m"
suite = "SmolLM2"
original = "f16"
[[model.run]]
quantization = "f16"
accuracies = ["a.json", "b.json"]
[[model.run]]
quantization = "q4_0"
accuracies = "c.json"
"""
PLAN = HEAD + MODEL


def written(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def test_a_plan_is_read_with_its_defaults(tmp_path: Path) -> None:
    """What is left out is a short scenario, five processes, this machine and its cores."""
    plan = read_plan(written(tmp_path, PLAN))
    assert (plan.prompt_lengths, plan.n_gen, plan.n_processes) == ((64,), 16, 5)
    assert (plan.device, plan.n_threads) == ("host", None)
    assert plan.tasks == (StudyTask(name="arc_easy", metric="acc_norm", chance=0.25),)
    assert (plan.reference, plan.reference_accuracies) == ("ref", (tmp_path / "ref.json",))
    original, quantized = plan.runs
    assert (original.name, original.weights, original.is_original) == ("smollm2-135m f16", "smollm2-135m-f16", True)
    assert original.accuracies == (tmp_path / "a.json", tmp_path / "b.json")
    assert (quantized.suite, quantized.is_original, quantized.is_measured) == ("SmolLM2", False, True)


def test_latencies_can_be_given(tmp_path: Path) -> None:
    given = PLAN + "latency = { prefill_s_per_token = 1e-3, decode_s_per_token = 2 }\n"
    run = read_plan(written(tmp_path, given)).runs[1]
    assert run.latency == TokenLatency(prefill_samples_s=(1e-3,), decode_samples_s=(2.0,), source="given")
    filed = read_plan(written(tmp_path, PLAN + 'run_file = "runs/run.json"\n')).runs[1]
    assert filed.run_file == tmp_path / "runs" / "run.json"
    assert run.is_measured is filed.is_measured is False


@pytest.mark.parametrize(("text", "weights"), [("llama-2-7b-q4_0", "llama-2-7b-q4_0"), ("m/x.gguf", "FOLDER/m/x.gguf")])
def test_weights_are_a_name_or_a_path_from_the_plan(text: str, weights: str, tmp_path: Path) -> None:
    run = read_plan(written(tmp_path, f'{PLAN}weights = "{text}"\n')).runs[1]
    assert run.weights == weights.replace("FOLDER", str(tmp_path))


def test_lengths_come_from_prompts_or_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("5\n7\n")
    plan = read_plan(written(tmp_path, f'prompts = "p.txt"\nn_gen = 3\nthreads = 2\n{PLAN}'))
    assert (plan.prompt_lengths, plan.n_gen, plan.n_threads) == ((5, 7), 3, 2)
    plan = read_plan(written(tmp_path, f'scenario = "p8-g2"\nreplicates = 3\ntitle = "x"\n{PLAN}'))
    assert (plan.prompt_lengths, plan.n_gen, plan.n_processes, plan.title) == ((8,), 2, 3, "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAN.replace("0.25", "1.0"), "task[0].chance is 1.0, expected a share of 0 or more and below 1"),
        (PLAN.replace('"f16"\n[[', '"f32"\n[['), "model[0].original is 'f32', expected one of f16, q4_0"),
        (PLAN.replace('"q4_0"', '"f16"'), "plan.toml: run 'smollm2-135m f16' occurs 2 times, expected once"),
        (
            PLAN + 'run_file = "x"\nlatency = { prefill_s_per_token = 1, decode_s_per_token = 1 }',
            "run[1].run_file is 'x', expected to be left out beside a latency",
        ),
        ('scenario = "p8-g1-d9"\n' + PLAN, "scenario is 'p8-g1-d9', expected a prompt and a generation"),
        ('scenario = "p8-g1"\nn_gen = 3\n' + PLAN, "n_gen is 3, expected to be left out beside a scenario"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PerfsuiteError) as caught:
        read_plan(written(tmp_path, text))
    assert message in str(caught.value)
