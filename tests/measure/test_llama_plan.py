"""From a workload on an engine to a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gguf import GGUFReader

from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import adapter_weights, llama_plan
from perfsuite.measure.plan import LlamaPlan
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve

from ..synthetic_opencl_backend import opencl_backend


def test_an_adapter_has_a_pair_for_each_matrix(tmp_path: Path) -> None:
    """Beside each matrix of a layer lie two of the rank, as large as it on their other sides."""
    weights = resolve("smollm2-135m-l1-q8_0", cache_dir=tmp_path)
    adapter = adapter_weights(weights, 4, cache_dir=tmp_path / "new")
    assert adapter.path is not None
    shapes = {tensor.name: tuple(map(int, tensor.shape)) for tensor in GGUFReader(adapter.path).tensors}
    assert len(shapes) == 2 * 7
    assert (shapes["blk.0.ffn_down.weight.lora_a"], shapes["blk.0.ffn_down.weight.lora_b"]) == ((1536, 4), (4, 576))


def test_an_adapter_is_written_once(tmp_path: Path) -> None:
    """A rank of an architecture has one file, which any weights of it share in all but the name."""
    weights = resolve("smollm2-135m-l1-q8_0", cache_dir=tmp_path)
    first, again = (adapter_weights(weights, 4, cache_dir=tmp_path) for _ in range(2))
    other = adapter_weights(weights, 8, cache_dir=tmp_path)
    assert first == again
    assert (first.identity, first.path) != (other.identity, other.path)
    assert [path.name for path in tmp_path.glob(".*")] == []


def plan_of(
    engine: Engine, tmp_path: Path, scenario: str = "siso", model: str = "smollm2-135m-q8_0", **settings: object
) -> LlamaPlan:
    workload = llama_workload(resolve(model, cache_dir=tmp_path), find_scenario(scenario))
    return llama_plan(
        workload,
        engine,
        gguf_path=tmp_path / "x.gguf",
        cache_dir=tmp_path,
        n_threads=2,
        **settings,  # type: ignore[arg-type]
    )


def test_a_plan_of_a_model_of_embeddings_is_one_chunk(engine: Engine, tmp_path: Path) -> None:
    """The longest prompt fits into the chunk; nothing is before or behind it, and the context gives embeddings."""
    plan = plan_of(engine, tmp_path, "p700-g5-d100", "nomic-embed-text-v1.5-q8_0", prompt_lengths=(900, 7))
    assert (plan.n_prompt, plan.n_gen, plan.n_depth, plan.n_batch, plan.n_ubatch) == (700, 0, 0, 900, 900)
    assert (plan.embeds, plan_of(engine, tmp_path).embeds) == (True, False)


def test_a_device_has_the_whole_model_and_so_has_the_processor(engine: Engine, tmp_path: Path) -> None:
    opencl = opencl_backend(tmp_path)
    plans = [plan_of(engine, tmp_path, opencl=each) for each in (None, opencl, replace(opencl, library=None))]
    assert [(plan.n_gpu_layers, plan.recorder, plan.backend_library) for plan in plans] == [
        (0, "callback", None),
        (999, "none", str(tmp_path / "libggml-opencl.so")),
        (999, "none", None),
    ]


def test_the_longest_prompt_fits(engine: Engine, tmp_path: Path) -> None:
    plan = plan_of(engine, tmp_path, "p10-g6", prompt_lengths=(5, 1500, 10))
    assert (plan.prompt_lengths, plan.n_batch, plan.n_ctx) == ((5, 1500, 10), 1500, 1536)
    assert plan_of(engine, tmp_path, "p10-g6").n_ctx == 256
