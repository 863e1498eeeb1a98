"""The graphs that llama.cpp says of a model, against the suite's own, and what happens where it says none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from perfsuite.errors import ArchitectureError, MeasurementError
from perfsuite.expectation.cases import operator_cases, phase_cases
from perfsuite.expectation.llama_workload import EngineGraphs, LlamaWorkload, llama_workload
from perfsuite.expectation.timing.engine_times import EngineTimes, case_forecasts
from perfsuite.expectation.workload_request import WorkloadRequest
from perfsuite.experiments.engine_graph import graph_differences
from perfsuite.experiments.phases.replicates import recorded_graph
from perfsuite.experiments.said_graphs import engine_graphs, with_engine_graphs
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import llama_plan, with_files
from perfsuite.records.case import REST_ROLE
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.samples import replicate_samples
from perfsuite.workload.catalog import find, listed, names, tiny_names
from perfsuite.workload.projector import find_projector
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import Weights, materialize, resolve, synthetic_weights

from ..synthetic_calibration import calibration

FAMILIES = {find(name).gguf_architecture: name for name in names()}
#: Two batches of a prompt, of which the first gives no logits, and steps of decoding, over a cache of three lengths.
SCENARIO = "p520-g8"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """An engine, a board to ask it on, and where the files of models lie."""

    engine: Engine
    board: LocalBoard
    models: Path

    def workload(self, name: str, **settings: Any) -> LlamaWorkload:
        """Return the workload of an architecture with two layers and a small vocabulary."""
        architecture = replace(find(name).with_layers(2), n_vocab=4096)
        weights = synthetic_weights(architecture, "q4_0", cache_dir=self.models)
        return llama_workload(weights, find_scenario(SCENARIO), **settings)

    def graphs(self, workload: LlamaWorkload) -> EngineGraphs:
        return engine_graphs(workload, self.engine, self.board, models_dir=self.models)

    def run(self, weights: Weights, scenario: str) -> tuple[LlamaWorkload, EngineRecord]:
        """Return a workload with what the engine says of it, and what a process of it recorded."""
        workload = llama_workload(weights, find_scenario(scenario))
        workload = replace(workload, engine_graphs=self.graphs(workload))
        path, cache_dir = self.board.place_weights(weights), self.board.cache_dir
        plan = llama_plan(workload, self.engine, gguf_path=path, cache_dir=cache_dir, n_threads=2)
        return workload, EngineRecord.from_plain(self.board.run(plan)["engine"])

    def with_graphs(self, workload: LlamaWorkload, remark: Callable[[str], None]) -> LlamaWorkload:
        return with_engine_graphs(workload, self.engine, self.board, models_dir=self.models, remark=remark)


@pytest.fixture(scope="module")
def asked(engine: Engine, engine_cache: Path) -> Asked:
    return Asked(engine=engine, board=LocalBoard(cache_dir=engine_cache), models=engine_cache / "models")


def unknown(weights: Weights, path: Path) -> Weights:
    told: dict[str, Any] = {"gguf_architecture": "unheard-of", "known_architecture": None, "quantization": None}
    return replace(weights, path=path, identity=str(path), **told)


@pytest.mark.long_but_first
@pytest.mark.parametrize("architecture", sorted(FAMILIES))
def test_the_engine_says_the_analytical_graph(asked: Asked, architecture: str) -> None:
    workload = asked.workload(FAMILIES[architecture])
    said = asked.graphs(workload)
    for batch in workload.graph_batches:
        assert said.operators(batch) == workload.operators(batch)
    assert said.n_vocab == 4096


#: Attention with sinks, in windows and shared by layers; experts; state spaces; a delta net; an encoder.
USUAL = ("bert", "gemma3n", "gpt-oss", "mamba", "qwen3next", "rwkv7")
#: What runs beside another model only; and caches that are compressed as the text goes on.
NOT_ALONE, OTHERWISE = ("eagle3", "dflash", "t5"), ("deepseek4", "glm5-next")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name.removeprefix("tiny-") in USUAL else pytest.mark.long)
        for name in tiny_names()
        if name.removeprefix("tiny-") not in (*NOT_ALONE, *OTHERWISE)
    ],
)
def test_what_is_said_is_what_runs(asked: Asked, name: str) -> None:
    workload, record = asked.run(resolve(f"{name}-q8_0", cache_dir=asked.models), "p16-g4")
    for phase in workload.graph_phases():
        assert graph_differences(workload.graph(phase), recorded_graph(record, phase, workload)) == ()


@pytest.mark.parametrize("name", ["tiny-clip-q8_0", "tiny-siglip-f16"])
@pytest.mark.parametrize("flash_attn", [True, False])
def test_the_graph_of_an_image_is_said_and_runs(asked: Asked, name: str, flash_attn: bool) -> None:
    """The operators of a projector are said before it runs, are those that are recorded, and all have a cost."""
    workload = asked.workload("smollm2-135m", flash_attn=flash_attn)
    projector = find_projector(name, workload.weights, cache_dir=asked.models)
    remarks: list[str] = []
    workload = asked.with_graphs(replace(workload, projector=projector), remarks.append)
    assert remarks == []
    assert workload.image_graph is not None
    assert all(each.cost.written_bytes > 0 for each in workload.image_graph)
    path, cache_dir = asked.board.place_weights(workload.weights), asked.board.cache_dir
    plan = llama_plan(workload, asked.engine, gguf_path=path, cache_dir=cache_dir, n_threads=2)
    record = EngineRecord.from_plain(asked.board.run(with_files(plan, workload, asked.board, asked.models))["engine"])
    for phase in workload.known_phases:
        assert graph_differences(workload.graph(phase), recorded_graph(record, phase, workload)) == ()
    costs = {case.phase: case.costs for case in phase_cases(workload)}
    assert sum(part.cost.parameter_bytes for part in costs[Phase.ENCODE_IMAGE]) > 0
    roles = [case.role for case in operator_cases(workload) if case.phase is Phase.ENCODE_IMAGE]
    assert {"Qcur", "ffn_up", "attn_out", "rest"} <= set(roles)


def test_a_projector_of_another_model_is_told_before_anything_runs(asked: Asked) -> None:
    workload, other = asked.workload("smollm2-135m"), asked.workload("pythia-70m")
    projector = find_projector("tiny-clip-f16", other.weights, cache_dir=asked.models)
    with pytest.raises(ArchitectureError, match=r"mismatch between text model \(n_embd = 576\) and mmproj") as caught:
        asked.with_graphs(replace(workload, projector=projector), pytest.fail)
    assert "\n" not in str(caught.value)


def pooled(name: str, pooling_type: int, models: Path) -> Weights:
    """Return weights whose file says how the rows that it gives are pooled: 1 the mean, 2 the first, 3 the last."""
    shape = listed(name).shape(f"{name}-pooled")
    metadata = tuple({**dict(shape.metadata), "pooling_type": pooling_type}.items())
    return synthetic_weights(replace(shape, metadata=metadata), "q8_0", cache_dir=models)


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("name", "pooling_type"),
    [("tiny-bert", None), ("tiny-nomic-bert", 1), ("tiny-modern-bert", 2), ("tiny-t5encoder", 1), ("tiny-qwen3", 3)],
)
def test_an_embedding_is_one_phase(asked: Asked, name: str, pooling_type: int | None) -> None:
    """A prompt is one pass, beyond llama.cpp's usual chunk too, said as it runs, and forecast; nothing follows it."""
    plain = resolve(f"{name}-q8_0", cache_dir=asked.models)
    weights = plain if pooling_type is None else pooled(name, pooling_type, asked.models)
    workload, record = asked.run(weights, "p320-g4-d8")
    assert graph_differences(workload.graph(Phase.EMBED), recorded_graph(record, Phase.EMBED, workload)) == ()
    samples = replicate_samples(record)
    assert set(samples.phase_ns) == {Phase.LOAD, Phase.EMBEDDING, Phase.EMBED, Phase.END_TO_END}
    assert [span.n_tokens for span in record.spans if span.phase is Phase.EMBED] == [320]
    cases = (*phase_cases(workload), *operator_cases(workload))
    assert {case.case_id for case in cases} == set(case_forecasts(workload, EngineTimes(calibration())))
    assert {case.role for case in cases if case.kind == "operator"} == {*samples.operator_ns[Phase.EMBED], REST_ROLE}


def test_no_weight_is_read(asked: Asked, tmp_path: Path) -> None:
    workload = asked.workload("smollm2-135m")
    path = materialize(workload.weights, cache_dir=asked.models)
    hollow = tmp_path / "hollow.gguf"
    with path.open("rb") as whole, hollow.open("wb") as file:
        file.write(whole.read(1 << 18))
        file.truncate(path.stat().st_size)
    other = replace(workload, weights=unknown(workload.weights, hollow))
    assert asked.graphs(other) == asked.graphs(workload)


def test_a_model_of_an_unknown_architecture_has_the_cases_of_a_known_one(asked: Asked) -> None:
    known = asked.workload("qwen1.5-moe-a2.7b")
    path = materialize(known.weights, cache_dir=asked.models)
    told: list[str] = []
    other = replace(known, weights=replace(unknown(known.weights, path), name=known.weights.name))
    other = asked.with_graphs(other, told.append)
    assert list(phase_cases(other)) == list(phase_cases(known))
    assert list(operator_cases(other)) == list(operator_cases(known))
    assert not told


def test_an_adapter_is_in_the_graph_of_any_architecture(asked: Asked) -> None:
    weights = resolve("tiny-gemma3-q8_0", cache_dir=asked.models)
    request = WorkloadRequest(lora_rank=4)
    adapted = request.workload(weights, find_scenario("p16-g4"), flash_attn=True, models_dir=asked.models)
    graph = asked.graphs(adapted).operators(adapted.batches(Phase.DECODE)[0])
    sides = [each for each in graph if each.role.endswith(("_lora_a", "_lora_b"))]
    assert len(sides) >= 2 * 7
    assert all(each.op == "MUL_MAT" and each.cost.parameter_bytes for each in sides)


def test_a_model_that_the_engine_cannot_load_is_refused_in_its_words(asked: Asked, tmp_path: Path) -> None:
    workload = asked.workload("smollm2-135m")
    broken = tmp_path / "broken.gguf"
    content = materialize(workload.weights, cache_dir=asked.models).read_bytes()
    broken.write_bytes(content.replace(b"llama.block_count", b"llama.block_maybe"))
    other = replace(workload, weights=unknown(workload.weights, broken))
    with pytest.raises(ArchitectureError, match=r"broken\.gguf: llama\.cpp cannot load it: .*llama\.block_count"):
        asked.with_graphs(other, lambda _: None)


def test_an_engine_that_says_no_graph_is_remarked(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = asked.workload("smollm2-135m")
    path = materialize(workload.weights, cache_dir=asked.models)
    cannot = MeasurementError("this release of llama.cpp cannot say a graph")
    monkeypatch.setattr(LocalBoard, "run", Mock(side_effect=cannot))
    told: list[str] = []
    other = replace(workload, weights=replace(unknown(workload.weights, path), identity="of this test's own"))
    assert asked.with_graphs(other, told.append) == other
    assert told == ["operators are enumerated once they were recorded: this release of llama.cpp cannot say a graph"]


def test_a_known_architecture_is_not_asked_for(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalBoard, "run", lambda *_, **__: pytest.fail("a process was started"))
    workload = asked.workload("smollm2-135m")
    assert asked.with_graphs(workload, pytest.fail) is workload
