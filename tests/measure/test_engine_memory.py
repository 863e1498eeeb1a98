"""The prediction against the engine's own account, to the byte, for every architecture whose graph is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.expectation.graph import KNOWN_GRAPHS
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.memory.need import memory_need
from perfsuite.measure.engine import Engine
from perfsuite.measure.engine_memory import EngineMemory, engine_memory
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import materialize, synthetic_weights

#: An architecture of each family, and what is told apart on it: flash attention, type of the cache, tokens at once,
#: and a ring for the sliding window.
CASES = (
    ("smollm2-135m", False, "f16", 512, True),
    ("smollm2-135m", True, "q8_0", 64, True),
    ("llama-3.2-1b", False, "f16", 512, True),
    ("pythia-70m", True, "f32", 512, True),
    ("gemma-2-2b", True, "q8_0", 128, False),
    ("qwen2.5-0.5b", True, "f16", 512, True),
    ("qwen3-0.6b", False, "f16", 128, True),
    ("phi-4-mini", True, "f16", 128, True),
    ("plm-1.8b", False, "f16", 512, True),
    ("qwen1.5-moe-a2.7b", True, "f16", 512, True),
    ("deepseek-v2-lite", True, "f32", 128, True),
    ("deepseek-v2-lite", False, "f16", 512, True),
)

Opened = Callable[[LlamaWorkload], EngineMemory]


def reduced(name: str) -> Architecture:
    """Two layers of an architecture, with few tokens and experts, so that its activations outweigh its logits."""
    architecture = replace(find(name).with_layers(2), n_vocab=512, n_ff=1024)
    if architecture.moe is None:
        return architecture
    few = replace(architecture.moe, n_experts=4, n_experts_used=3, n_ff_expert=256, n_ff_shared=512)
    return replace(architecture, moe=few)


@pytest.fixture
def opened(engine: Engine, engine_cache: Path, tmp_path: Path) -> Opened:
    def ask(workload: LlamaWorkload) -> EngineMemory:
        path = materialize(workload.weights, cache_dir=tmp_path)
        plan = llama_plan(workload, engine, gguf_path=path, cache_dir=engine_cache, n_threads=1)
        return engine_memory(plan)

    return ask


def test_every_family_is_among_the_cases() -> None:
    assert {find(name).gguf_architecture for name, *_ in CASES} == KNOWN_GRAPHS


@pytest.mark.long_but_first
@pytest.mark.parametrize(("name", "flash_attn", "type_name", "n_ubatch", "swa_full"), CASES)
def test_the_engine_reserves_what_is_predicted(
    opened: Opened, tmp_path: Path, name: str, type_name: str, n_ubatch: int, *, flash_attn: bool, swa_full: bool
) -> None:
    weights = synthetic_weights(reduced(name), "q4_0", cache_dir=tmp_path)
    usual = llama_workload(
        weights, find_scenario("p900-g24"), flash_attn=flash_attn, type_k=type_name, type_v=type_name
    )
    workload = replace(usual, n_ubatch=n_ubatch, settings=replace(usual.settings, swa_full=swa_full))
    engine = opened(workload)
    need = memory_need(workload, cpu_features=engine.cpu_features)
    for field in ("weights_mapped_bytes", "weights_repacked_bytes", "kv_bytes", "compute_bytes"):
        assert (field, getattr(need, field)) == (field, getattr(engine, field))
