"""Graphs that an engine says: what differs from those that it computes, and is put right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.graph import Batch, Operator, Settings, engine_graph, refusal
from perfsuite.expectation.llama_workload import GraphKey, LlamaWorkload
from perfsuite.expectation.speculation import Drafting, Speculation
from perfsuite.experiments.engine_graph import (
    STAND_IN_OUTPUTS,
    graph_differences,
    recorded_cost,
    said_operators,
    shape_of,
)
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.launch import run_worker
from perfsuite.measure.llama_plan import write_adapter
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import EngineRecord, Node, Phase, Tensor
from perfsuite.trace.operators import RecordedOperator, timed_operators
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find, names
from perfsuite.workload.scenario import Scenario, find_scenario
from perfsuite.workload.weights import Weights, materialize, resolve, synthetic_weights
from tests.measure.conftest import led

#: The vocabulary is one dimension of two operators: a small one saves gigabytes.
N_VOCAB = 4096

#: Types of the cache that every architecture is compared with, with and without flash attention.
CACHE_TYPES = (("f16", "f16"), ("q8_0", "q8_0"), ("q4_0", "q4_0"), ("f32", "f32"), ("q8_0", "f16"))
SETTINGS = tuple(
    Settings(flash_attn=flash_attn, type_k=type_k, type_v=type_v)
    for flash_attn in (True, False)
    for type_k, type_v in CACHE_TYPES
)

#: Longest that one run may take, s.
LIMIT_S = 120.0

#: One catalogue entry of each GGUF architecture.
FAMILIES = {find(name).gguf_architecture: name for name in sorted(names(), key=lambda name: -find(name).n_parameters)}


@dataclass(frozen=True, kw_only=True)
class Run:
    """Weights in a file, a scenario and settings: what is run and what is expected of it."""

    weights: Weights
    path: Path
    scenario: Scenario
    settings: Settings
    n_ubatch: int = 512
    lora_path: Path | None = None
    n_sequences: int = 1
    drafting: Drafting | None = None

    @property
    def workload(self) -> LlamaWorkload:
        n_ctx = -(-self.scenario.n_ctx // 256) * 256
        return LlamaWorkload(
            weights=self.weights,
            scenario=self.scenario,
            settings=self.settings,
            n_ctx=n_ctx,
            n_ubatch=self.n_ubatch,
            n_sequences=self.n_sequences,
            drafting=self.drafting,
        )

    def expected(self) -> list[tuple[Operator, ...]]:
        workload, weights = self.workload, self.weights
        prompts = workload.batches(Phase.PREFILL) * self.n_sequences
        batches = (*prompts, *workload.batches(Phase.DECODE) * workload.occurrences(Phase.DECODE))
        return [engine_graph(weights.architecture, weights.tensor_types, batch, self.settings) for batch in batches]


@dataclass(frozen=True, kw_only=True)
class Measurer:
    """Runs weights in fresh processes."""

    engine: Engine
    cache_dir: Path
    model_dir: Path

    @contextmanager
    def written(self, weights: Weights) -> Iterator[Path]:
        """Write the weights to a file that is gone afterwards."""
        path = materialize(weights, cache_dir=self.model_dir)
        try:
            yield path
        finally:
            path.unlink()

    def plan(self, run: Run) -> LlamaPlan:
        return LlamaPlan(
            gguf_path=str(run.path),
            library_dir=str(self.engine.library_dir),
            engine_build_id=self.engine.build_id,
            cache_dir=str(self.cache_dir),
            n_threads=1,
            n_prompt=run.scenario.n_prompt,
            n_gen=run.scenario.n_gen,
            n_depth=run.scenario.n_depth,
            n_batch=max(512, run.scenario.n_prompt),
            n_ubatch=run.n_ubatch,
            flash_attn=run.settings.flash_attn,
            type_k=run.settings.type_k,
            type_v=run.settings.type_v,
            swa_full=run.settings.swa_full,
            lora_path=str(run.lora_path) if run.lora_path else None,
            n_sequences=run.n_sequences,
            n_draft=run.workload.n_draft,
            acceptance_ratio=run.drafting.speculation.acceptance_ratio if run.drafting else 0.0,
        )

    def record(self, run: Run) -> EngineRecord | str:
        """Record a run, or show in llama.cpp's words why it refuses it."""
        try:
            with led(self.plan(run), LIMIT_S) as worker:
                worker.run(self.plan(run))
                return EngineRecord.from_plain(worker.payload()["engine"])
        except MeasurementError as error:
            return str(error)

    def compare(self, *runs: Run) -> None:
        """Require of every evaluation of each run the expected operators, in their order, or the expected refusal."""
        for run in runs:
            record = self.record(run)
            reason = refusal(run.weights.architecture, run.settings)
            if isinstance(record, str):
                assert reason is not None, record
                continue
            assert reason is None
            for graph, number in zip(run.expected(), evaluations_of(record).graph, strict=True):
                recorded = timed_operators(record.graphs[number])
                assert [difference.text for difference in graph_differences(graph, recorded)] == []
                assert [(at.role, at.layer) for at in graph] == [(at.role, at.layer) for at in recorded]


@pytest.fixture(scope="session")
def measurer(tmp_path_factory: pytest.TempPathFactory) -> Measurer:
    """Return the means to run weights; the compiled library is shared with other tests of the session."""
    return Measurer(
        engine=find_engine(),
        cache_dir=tmp_path_factory.getbasetemp() / "engine-cache",
        model_dir=tmp_path_factory.mktemp("models"),
    )


def cut(name: str) -> Architecture:
    """Return an architecture of the catalogue with two layers and a small vocabulary."""
    return replace(find(name).with_layers(2), n_vocab=N_VOCAB)


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAMILIES.values() else pytest.mark.long) for name in names()]
)
def test_the_analytical_graph_is_the_graph_that_ran(measurer: Measurer, name: str) -> None:
    weights = synthetic_weights(cut(name), "q4_0", cache_dir=measurer.model_dir)
    settings = [each for each in SETTINGS if weights.architecture.family.flash_attention or not each.flash_attn]
    with measurer.written(weights) as path:
        run = Run(weights=weights, path=path, scenario=find_scenario("p10-g1"), settings=Settings(), n_ubatch=4)
        measurer.compare(*(replace(run, settings=each) for each in settings))


@pytest.mark.parametrize("name", [name for name in names() if not find(name).family.flash_attention])
def test_flash_attention_where_there_is_none_ends_the_engine(measurer: Measurer, name: str) -> None:
    weights = synthetic_weights(cut(name), "q4_0", cache_dir=measurer.model_dir)
    assert all(refusal(weights.architecture, settings) for settings in SETTINGS if settings.flash_attn)
    with measurer.written(weights) as path:
        run = Run(weights=weights, path=path, scenario=find_scenario("p5-g1"), settings=Settings())
        for settings in (Settings(), Settings(type_k="q8_0", type_v="q8_0")):
            with pytest.raises(MeasurementError, match="GGML_ASSERT"):
                run_worker(measurer.plan(replace(run, settings=settings)))


@pytest.mark.long_but_first
@pytest.mark.parametrize("scenario", ["p600-g1", "p1024-g1", "p20-g1-d600"])
def test_prompts_in_several_batches_and_a_filled_cache_match_too(measurer: Measurer, scenario: str) -> None:
    weights = resolve("smollm2-135m-l2-q8_0", cache_dir=measurer.model_dir)
    with measurer.written(weights) as path:
        run = Run(weights=weights, path=path, scenario=find_scenario(scenario), settings=Settings())
        measurer.compare(run, replace(run, settings=Settings(flash_attn=False)))


@pytest.mark.long_but_first
@pytest.mark.parametrize("scenario", ["p40-g1", "p600-g3", "p20-g3-d700"])
def test_a_sliding_window_matches_within_and_beyond_it(measurer: Measurer, scenario: str) -> None:
    """Layers with a window have a cache of their own where asked for, which is a ring, and else keep all positions."""
    narrow = replace(cut("gemma-2-2b"), n_embd=256, n_ff=512, n_heads=2, n_kv_heads=1, sliding_window=180)
    weights = synthetic_weights(narrow, "q8_0", cache_dir=measurer.model_dir)
    with measurer.written(weights) as path:
        run = Run(weights=weights, path=path, scenario=find_scenario(scenario), settings=Settings(), n_ubatch=70)
        settings = [
            Settings(flash_attn=flash_attn, swa_full=swa_full, type_k=type_k)
            for flash_attn in (True, False)
            for swa_full in (True, False)
            for type_k in ("f16", "q8_0")
        ]
        measurer.compare(*(replace(run, settings=each) for each in settings))


def variants() -> Iterator[Architecture]:
    """Yield what the catalogue has none of, and llama.cpp builds all the same."""
    neox, qwen, phi = cut("pythia-70m"), cut("qwen2.5-0.5b"), replace(cut("phi-4-mini"), n_ff=1024)
    gemma = replace(cut("gemma-2-2b"), n_embd=256, n_ff=512, n_heads=2, n_kv_heads=1)
    yield replace(neox, name="neox-sequential", parallel_residual=False)
    yield replace(qwen, name="qwen2-fused", fused_qkv=True)
    yield replace(phi, name="phi3-split", fused_qkv=False)
    yield replace(cut("smollm2-135m").with_layers(1), name="llama-of-one-layer", tied_embeddings=False)
    yield replace(gemma.with_layers(1), name="gemma2-of-one-layer")
    defaults = {"sliding_window": None, "attn_logit_softcap": None, "final_logit_softcap": None}
    yield replace(gemma, name="gemma2-defaults", **defaults)  # type: ignore[arg-type]
    deepseek = replace(cut("deepseek-v2-lite"), n_embd=512, n_ff=1024)
    assert deepseek.moe is not None
    assert deepseek.mla is not None
    few = replace(deepseek.moe, n_experts=8, n_ff_expert=256, n_ff_shared=256)
    yield replace(deepseek, name="deepseek2-one-expert", moe=replace(few, n_experts_used=1))
    scaled = replace(few, n_experts_used=2, normalize_weights=True, weights_scale=2.5)
    yield replace(deepseek, name="deepseek2-low-rank", moe=scaled, mla=replace(deepseek.mla, q_lora_rank=256))
    whole = replace(deepseek.mla, absorbed=False)
    yield replace(deepseek, name="deepseek2-decompressed", moe=few, mla=whole, n_kv_heads=deepseek.n_heads)


@pytest.mark.long
@pytest.mark.parametrize("architecture", tuple(variants()), ids=lambda architecture: architecture.name)
def test_what_the_catalogue_lacks_matches_too(measurer: Measurer, architecture: Architecture) -> None:
    weights = synthetic_weights(architecture, "q4_0", cache_dir=measurer.model_dir)
    with measurer.written(weights) as path:
        run = Run(weights=weights, path=path, scenario=find_scenario("p10-g1"), settings=Settings(), n_ubatch=4)
        measurer.compare(*(replace(run, settings=replace(each, swa_full=False)) for each in SETTINGS))


@pytest.mark.parametrize("quantization", ["f16", "q8_0", "q4_k_m"])
def test_every_quantization_matches(measurer: Measurer, quantization: str) -> None:
    weights = synthetic_weights(cut("tinyllama-1.1b"), quantization, cache_dir=measurer.model_dir)
    with measurer.written(weights) as path:
        measurer.compare(Run(weights=weights, path=path, scenario=find_scenario("p5-g1"), settings=Settings()))


@pytest.mark.long
def test_other_types_of_the_cache_match(measurer: Measurer) -> None:
    """Keys and values may be of any two types of the engine's."""
    weights = resolve("smollm2-135m-l2-q8_0", cache_dir=measurer.model_dir)
    kinds = ("bf16", "q8_0"), ("q8_0", "q4_0"), ("f32", "f16"), ("f16", "f32"), ("q4_0", "f32"), ("q5_1", "iq4_nl")
    with measurer.written(weights) as path:
        run = Run(weights=weights, path=path, scenario=find_scenario("p5-g1"), settings=Settings())
        settings = (
            Settings(flash_attn=flash_attn, type_k=type_k, type_v=type_v)
            for flash_attn in (True, False)
            for type_k, type_v in kinds
        )
        measurer.compare(*(replace(run, settings=each) for each in settings))


@pytest.mark.long
@pytest.mark.parametrize("name", tuple(FAMILIES.values()))
def test_an_adapter_matches(measurer: Measurer, name: str, tmp_path: Path) -> None:
    """With a LoRA adapter on every matrix of the layers, the engine adapts those that are expected, and as expected."""
    weights = synthetic_weights(cut(name), "q4_0", cache_dir=measurer.model_dir)
    write_adapter(weights.architecture, 4, tmp_path / "adapter.gguf")
    can_flash = weights.architecture.family.flash_attention
    with measurer.written(weights) as path:
        run = Run(
            weights=weights,
            path=path,
            scenario=find_scenario("p5-g1"),
            settings=Settings(flash_attn=can_flash, lora_rank=4),
            lora_path=tmp_path / "adapter.gguf",
        )
        quantized = Settings(flash_attn=can_flash, lora_rank=4, type_k="q8_0", type_v="q8_0" if can_flash else "f16")
        measurer.compare(run, replace(run, settings=quantized))


@pytest.mark.long_but_first
@pytest.mark.parametrize("name", ["smollm2-135m", "gemma-2-2b", "pythia-70m", "deepseek-v2-lite"])
def test_sequences_side_by_side_match(measurer: Measurer, name: str) -> None:
    weights = synthetic_weights(cut(name), "q4_0", cache_dir=measurer.model_dir)
    with measurer.written(weights) as path:
        run = Run(weights=weights, path=path, scenario=find_scenario("p5-g2"), settings=Settings(), n_sequences=3)
        measurer.compare(*(replace(run, settings=each) for each in (*SETTINGS[:2], *SETTINGS[5:7])))


def test_the_check_of_a_draft_matches(measurer: Measurer) -> None:
    weights = resolve("smollm2-135m-l2-q8_0", cache_dir=measurer.model_dir)
    drafting = Drafting(weights=None, speculation=Speculation(n_draft=3, acceptance_ratio=1.0))
    with measurer.written(weights) as path:
        run = Run(weights=weights, path=path, scenario=find_scenario("p5-g8"), settings=Settings(), drafting=drafting)
        measurer.compare(run)


Graphs = tuple[tuple[Operator, ...], tuple[RecordedOperator, ...]]


@pytest.fixture
def decode_graphs(stored_record: EngineRecord, tmp_path: Path) -> Graphs:
    """Return the expected and the stored graph of a decode step."""
    weights = resolve("smollm2-135m-l2-q8_0", cache_dir=tmp_path)
    batch = Batch(n_tokens=1, n_outputs=1, n_used=65, n_ctx=256)
    expected = engine_graph(weights.architecture, weights.tensor_types, batch, Settings())
    return expected, timed_operators(stored_record.graphs[evaluations_of(stored_record).graph[-1]])


def test_the_stored_graph_matches_or_each_difference_is_one_line(decode_graphs: Graphs) -> None:
    """The order does not matter; an operator on one side alone has its place, shapes and cost."""
    expected, recorded = decode_graphs
    assert (graph_differences(expected, recorded), graph_differences(expected[::-1], recorded)) == ((), ())
    expected, recorded = decode_graphs
    (missing,) = graph_differences(expected, recorded[:-1])
    assert missing.role == "result_output"
    assert missing.text.startswith(
        "expected and not recorded: result_output: MUL_MAT q8_0[576, 49152, 1, 1], f32[576, 1,"
    )
    (surplus,) = graph_differences(expected[:-1], recorded)
    assert surplus.text.startswith("recorded and not expected: result_output: MUL_MAT ")
    assert surplus.text.endswith(
        "56623104 FLOPs, 30083328 B read (30081024 B parameters, 0 B KV), 196608 B written (0 B KV)"
    )
    (twice,) = graph_differences((*expected, expected[3]), recorded)
    assert f"{expected[3].role} in layer 0: " in twice.text


def _with_node(**change: Callable[[Node], Any]) -> Callable[[RecordedOperator], RecordedOperator]:
    """Return what changes one field of an operator's node, by what it was."""
    ((field, changed),) = change.items()
    return lambda operator: replace(operator, node=replace(operator.node, **{field: changed(operator.node)}))


@pytest.mark.parametrize(
    "changed",
    [
        _with_node(tensor=lambda node: replace(node.tensor, ne=(1, 2, 3, 4))),
        lambda operator: replace(operator, role="other"),
        lambda operator: replace(operator, layer=1),
        _with_node(op=lambda _: "OTHER_OP"),
        _with_node(sources=lambda node: (replace(node.sources[0], type="f16"), node.sources[1])),
        _with_node(sources=lambda node: node.sources[:1] * 2),
        _with_node(tensor=lambda node: replace(node.tensor, type="no_type")),
    ],
    ids=["shape", "role", "layer", "operator", "type", "sources", "unknown-type"],
)
def test_every_property_of_an_operator_is_compared(decode_graphs: Graphs, changed: Any) -> None:
    expected, recorded = decode_graphs
    at = next(index for index, operator in enumerate(recorded) if operator.role == "Qcur")
    other = (*recorded[:at], changed(recorded[at]), *recorded[at + 1 :])
    assert len(graph_differences(expected, other)) == 2


def test_what_is_computed_otherwise_is_the_same_work(decode_graphs: Graphs) -> None:
    """Another operator or shape is; an operator or a parameter more or less is not."""
    expected, recorded = decode_graphs
    at = next(index for index, operator in enumerate(recorded) if operator.role == "cache_k")
    copied = _with_node(op=lambda _: "CPY")(recorded[at])
    otherwise = graph_differences(expected, (*recorded[:at], copied, *recorded[at + 1 :]))
    assert [each.is_other_work for each in otherwise] == [False, False]
    at = next(index for index, operator in enumerate(recorded) if operator.role == "Qcur")
    narrow = _with_node(sources=lambda node: (replace(node.sources[0], ne=(576, 8, 1, 1)), node.sources[1]))
    less = graph_differences(expected, (*recorded[:at], narrow(recorded[at]), *recorded[at + 1 :]))
    assert [each.is_other_work for each in less] == [True, True]
    assert [each.is_other_work for each in graph_differences(expected, recorded[1:])] == [True]


def test_a_recorded_operator_costs_what_the_expected_one_does(decode_graphs: Graphs) -> None:
    expected, recorded = decode_graphs
    of_role = {operator.role: operator for operator in expected}
    for operator in recorded:
        cost, wanted = recorded_cost(operator.node), of_role[operator.role]
        assert (cost.flops, cost.moved_bytes) == (wanted.cost.flops, wanted.cost.moved_bytes)
        assert shape_of(operator.node.tensor) == wanted.output


FIRST, NEXT = GraphKey(4, 1, 256, is_first=True), GraphKey(4, 1, 256, is_first=False)


def tensor(name: str, *ne: int, root: int, type_name: str = "f32") -> Tensor:
    """Return a tensor whose memory is known by a number."""
    a, b, c, d = (*ne, 1, 1, 1, 1)[:4]
    return Tensor(name=name, type=type_name, ne=(a, b, c, d), nb=(4, 4 * a, 4 * a * b, 4 * a * b * c), root=root)


def node(made: Tensor, op: str, *sources: Tensor) -> Node:
    return Node(tensor=made, op=op, sources=sources)


@pytest.mark.parametrize(("key", "n_cleared"), [(FIRST, 64), (NEXT, 0)])
def test_a_state_is_cleared_before_a_text_alone(key: GraphKey, n_cleared: int) -> None:
    state = tensor("conv_states (reshaped) (view)", 64, root=1)
    rows = tensor("x", 8, 4, root=2)
    clearing = node(replace(state, name="conv_states (view)"), "SCALE", state)
    made = node(rows, "MUL", tensor("a", 8, 4, root=3), tensor("b", 8, 4, root=4))
    scaled = node(replace(rows, name="scaled"), "SCALE", rows)
    found = said_operators([clearing, made, scaled], key)
    assert [each.output.n_elements for each in found] == [n_cleared, 32, 32]


def test_what_is_stored_goes_into_the_whole_cache() -> None:
    """The cache of keys and that of an index have one name, and are told apart by their width."""

    def stores(n_cells: int) -> list[Node]:
        caches = [tensor("cache_k_l0", width, n_cells, root=width, type_name="f16") for width in (64, 32)]
        rows = tensor("k", 64, 4, root=5)
        places = tensor("k_idxs", 4, root=6, type_name="i64")
        return [node(replace(each, name="cache_k_l0 (view)"), "SET_ROWS", rows, places, each) for each in caches]

    found = said_operators(stores(256), FIRST, whole=stores(1024))
    assert [each.output.ne for each in found] == [(64, 1024, 1, 1), (32, 1024, 1, 1)]
    assert [each.sources[2].ne for each in found] == [(64, 1024, 1, 1), (32, 1024, 1, 1)]


def test_a_batch_without_logits_has_no_rows_behind_their_gather() -> None:
    """What stands in for the outputs is 0 in all that follows, and the cache is untouched."""
    ids = tensor("out_ids", STAND_IN_OUTPUTS, root=1, type_name="i32")
    rows, gathered = tensor("x", 8, 512, root=2), tensor("node_1", 8, STAND_IN_OUTPUTS, root=3)
    weight = tensor("output.weight", 8, STAND_IN_OUTPUTS, root=4)
    graph = [
        node(rows, "ADD", tensor("a", 8, 512, root=5), tensor("b", 8, 512, root=6)),
        node(gathered, "GET_ROWS", rows, ids),
        node(tensor("result_output", STAND_IN_OUTPUTS, STAND_IN_OUTPUTS, root=7), "MUL_MAT", weight, gathered),
    ]
    add, gather, logits = said_operators(graph, GraphKey(512, 0, 512, is_first=True))
    assert (add.output.n_elements, gather.output.ne[1], logits.output.ne[1]) == (8 * 512, 0, 0)
    assert logits.sources[0].ne == (8, STAND_IN_OUTPUTS, 1, 1)
