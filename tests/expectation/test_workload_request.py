"""How a model is asked to be run, whichever door it comes through."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.workload_request import WorkloadRequest
from perfsuite.workload.scenario import find_scenario
from tests.catalogue_workloads import catalogue_weights

WEIGHTS, SCENARIO = catalogue_weights("smollm2-135m-l2-q8_0"), find_scenario("p5-g6")


def test_options_that_are_not_there_change_nothing() -> None:
    request = WorkloadRequest.of(Namespace(model="own"))
    workload = request.workload(WEIGHTS, SCENARIO, flash_attn=True, models_dir=Path("models"))
    assert (workload, workload.is_alone) == (llama_workload(WEIGHTS, SCENARIO), True)


@pytest.mark.parametrize("asked", [{"lora_rank": 4}, {"parallel": 2}, {"draft": "ngram"}])
def test_what_runs_beside_a_model_is_said(asked: dict[str, int | str]) -> None:
    """With any of it the model is not alone."""
    request = WorkloadRequest.of(Namespace(**asked))
    assert not request.workload(WEIGHTS, SCENARIO, flash_attn=True, models_dir=Path("models")).is_alone


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"parallel": 2}, "--parallel=2: tiny-bert gives embeddings and generates nothing"),
        ({"draft": "ngram"}, "--draft=ngram: tiny-bert gives embeddings"),
        ({"ubatch_size": 4}, "--ubatch-size=4: tiny-bert-q8_0 reads a prompt in one pass, expected 5 or more"),
    ],
)
def test_a_model_of_embeddings_is_asked_for_prompts_alone(asked: dict[str, int | str], why: str) -> None:
    """What is about generating is refused in a line; an adapter is taken, and so is a chunk that holds the prompt."""
    weights = catalogue_weights("tiny-bert-q8_0")
    with pytest.raises(PerfsuiteError, match=why):
        WorkloadRequest.of(Namespace(**asked)).workload(weights, SCENARIO, flash_attn=True, models_dir=Path("models"))
    request = WorkloadRequest(lora_rank=4, ubatch_size=5)
    workload = request.workload(weights, SCENARIO, flash_attn=True, models_dir=Path("models"))
    assert (workload.settings.lora_rank, workload.n_ubatch) == (4, 5)


def test_a_path_may_hold_colons() -> None:
    request = WorkloadRequest(draft="/a:b/none.gguf:4:0.5")
    with pytest.raises(PerfsuiteError, match=r"^/a:b/none\.gguf: "):
        request.workload(WEIGHTS, SCENARIO, flash_attn=True, models_dir=Path("models"))
