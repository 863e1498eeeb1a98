"""What a run does beside a model alone: how it is asked for, and what does not go together."""

from __future__ import annotations

import pytest

from perfsuite.expectation.cases import phase_cases
from perfsuite.expectation.speculation import Speculation
from perfsuite.experiments.binding.experiment import is_asked
from perfsuite.experiments.engine_runs import graph_settings
from perfsuite.experiments.run_config import RunConfig
from perfsuite.plugin.options import resolve_config
from perfsuite.records.events import Phase
from tests.fake_device import FakeDevice

MODEL = "--model=smollm2-135m-l2-q8_0"


def asked(pytester: pytest.Pytester, *arguments: str) -> RunConfig:
    return resolve_config(pytester.parseconfig("--device=host", MODEL, *arguments))


def test_an_adapter_is_a_setting_of_the_workload(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """Its rank is what a baseline is known by; without one the baseline is what it always was."""
    plain, adapted = asked(pytester), asked(pytester, "--lora-rank=8")
    assert adapted.workload.settings.lora_rank == 8
    assert graph_settings(adapted) == {**graph_settings(plain), "lora_rank": "8"}


def test_sequences_share_a_step(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """A decode step has a token of each sequence, and every one gives logits; a prompt is one sequence's."""
    plain, parallel = asked(pytester), asked(pytester, "--parallel=3")
    (step,), (prompt,) = (parallel.workload.batches(phase) for phase in (Phase.DECODE, Phase.PREFILL))
    assert (step.n_tokens, step.n_outputs, step.n_sequences, step.n_caches) == (3, 3, 3, 3)
    assert (prompt.n_tokens, prompt.n_sequences, prompt.n_caches) == (64, 1, 3)
    assert graph_settings(parallel) == {**graph_settings(plain), "n_sequences": "3"}


@pytest.mark.parametrize(
    ("text", "model", "n_draft", "acceptance_ratio"),
    [
        ("ngram", None, 4, 0.8),
        ("ngram:2", None, 2, 0.8),
        ("smollm2-135m-l1-q8_0:3:0.5", "smollm2-135m-l1-q8_0", 3, 0.5),
    ],
)
def test_a_draft_is_a_model_or_the_text(
    pytester: pytest.Pytester,
    fake_device: FakeDevice,
    text: str,
    model: str | None,
    n_draft: int,
    acceptance_ratio: float,
) -> None:
    """What is not said is what a forecast takes, too; a step verifies the tokens of a round and one more."""
    workload = asked(pytester, f"--draft={text}").workload
    (step,) = workload.batches(Phase.DECODE)
    assert workload.drafting is not None
    assert (workload.draft and workload.draft.weights.name) == model
    assert workload.drafting.speculation == Speculation(n_draft=n_draft, acceptance_ratio=acceptance_ratio)
    assert (step.n_tokens, step.n_outputs) == (n_draft + 1, n_draft + 1)
    assert graph_settings(asked(pytester, f"--draft={text}"))["draft"].endswith(f":{n_draft}:{acceptance_ratio:g}")


def test_a_draft_has_phases_of_its_own(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """It reads the prompt, and proposes; where the text itself is searched that takes no time worth a case."""
    own = {Phase.DRAFT_PREFILL, Phase.DRAFT}
    drafted = {case.phase: case.costs for case in phase_cases(asked(pytester, f"--draft={MODEL[8:]}:3").workload)}
    assert own <= drafted.keys()
    flops = {phase: sum(part.cost.flops for part in drafted[phase]) for phase in (Phase.DRAFT, Phase.DECODE)}
    assert 0 < flops[Phase.DRAFT] < flops[Phase.DECODE]
    assert own.isdisjoint(case.phase for case in phase_cases(asked(pytester, "--draft=ngram").workload))


def test_an_image_is_a_phase_before_the_prompt(pytester: pytest.Pytester, fake_device: FakeDevice) -> None:
    """A projector follows the model's width, and is what a baseline is known by."""
    plain, run = asked(pytester), asked(pytester, "--mmproj=clip-vit-l14-336-f16")
    assert run.workload.projector is not None
    assert dict(run.workload.projector.weights.shape.metadata)["vision.projection_dim"] == 576
    identity = run.workload.projector.weights.identity
    assert graph_settings(run) == {**graph_settings(plain), "mmproj": identity}
    costs = {case.phase: case.costs for case in phase_cases(run.workload)}
    assert next(iter(costs)) is Phase.ENCODE_IMAGE
    assert costs[Phase.ENCODE_IMAGE] == costs[Phase.END_TO_END] == ()
    assert costs[Phase.DECODE] == {case.phase: case.costs for case in phase_cases(plain.workload)}[Phase.DECODE]


@pytest.mark.parametrize("option", ["--lora-rank=8", "--parallel=2", "--draft=ngram", "--mmproj=tiny-clip-f16"])
def test_the_binding_runs_a_model_alone(pytester: pytest.Pytester, fake_device: FakeDevice, option: str) -> None:
    assert (is_asked(asked(pytester)), is_asked(asked(pytester, option))) == (True, False)
