"""What a calibration measures, and the models of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.expectation.op_rules import MEASURABLE
from perfsuite.expectation.timing.calibration_plan import (
    quick_architectures,
    quick_plan,
    reference_architectures,
    reference_models,
    reference_weights,
    standard_plan,
)
from perfsuite.expectation.timing.engine_factors import streamed_bytes
from perfsuite.expectation.timing.engine_times import phase_operators, phase_shapes
from perfsuite.expectation.timing.features import family, shape_cost
from perfsuite.expectation.timing.grid import standard_shapes
from perfsuite.records.events import Phase
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find, names
from perfsuite.workload.ggml_types import GGML_TYPES
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import synthetic_weights

from ...catalogue_workloads import catalogue_workload

NOWHERE = Path("/nowhere")


def workload_of(model: str = "smollm2-135m-q8_0", scenario: str = "siso", **settings: bool) -> LlamaWorkload:
    return catalogue_workload(model, scenario, **settings)


@pytest.mark.parametrize("scenario", ["siso", "liso", "p600-g5-d300", "p0-g8"])
@pytest.mark.parametrize("architecture", ["smollm2-135m", "qwen3-0.6b", "gemma-2-2b", "deepseek-v2-lite"])
def test_what_a_workload_computes_is_measured(architecture: str, scenario: str) -> None:
    """Each kind and type that can be measured alone is, at the very numbers of rows that the workload has."""
    workload = workload_of(f"{architecture}-q4_0", scenario)
    points = {(family(shape), shape.n_tokens) for shape in quick_plan(workload, NOWHERE).shapes}
    needed = {
        (family(shape), shape.n_tokens)
        for phase in workload.graph_phases()
        for shape in phase_operators(workload, phase)
        if shape.op in MEASURABLE
    }
    assert needed <= points


@pytest.mark.parametrize("architecture", names())
def test_a_quick_one_stays_small_whatever_the_model(architecture: str) -> None:
    """There are few operators, all of them known, of whole blocks, and none that takes long by itself."""
    workload = workload_of(f"{architecture}-q8_0", "liso-long")
    if workload.settings.flash_attn:
        workload = replace(workload, settings=replace(workload.settings, type_k="q8_0", type_v="q8_0"))
    shapes = quick_plan(workload, NOWHERE).shapes
    assert len(set(shapes)) == len(shapes) < len(standard_shapes()) / 5
    assert {shape.op for shape in shapes} <= MEASURABLE
    assert all(GGML_TYPES[shape.type.upper()].fits(shape.n_inner) for shape in shapes)
    assert sum(shape_cost(shape).flops for shape in shapes) < 100e9


def test_the_workload_itself_is_not_run() -> None:
    """What the engine adds is learnt of smaller architectures, of the workload's types and prompt and settings."""
    workload = workload_of("smollm2-135m-q5_1", "p100-g4", flash_attn=False)
    for each in quick_plan(workload, NOWHERE).compositions:
        assert each.weights.architecture.n_embd != workload.weights.architecture.n_embd
        assert (each.weights.quantization, each.scenario.n_prompt) == ("q5_1", 100)
        assert each.settings == workload.settings


@pytest.mark.parametrize(
    ("model", "type_name"),
    [("smollm2-135m-q5_k_m", "q5_1"), ("llama-3.2-1b-q5_k_m", "q5_k"), ("smollm2-135m-f32", "f32")],
)
def test_the_architectures_have_the_type_that_most_matrices_have(model: str, type_name: str) -> None:
    """A mixture takes other types where rows are no whole blocks, and a given file may have any."""
    compositions = quick_plan(workload_of(model), NOWHERE).compositions
    assert {each.weights.quantization for each in compositions} == {type_name}


def test_a_quick_one_is_known_by_its_contents() -> None:
    workloads = (workload_of(), workload_of("smollm2-135m-q4_0"), workload_of(scenario="liso"))
    contents = [quick_plan(each, NOWHERE).contents for each in (*workloads, workload_of(flash_attn=False))]
    assert len(set(contents)) == 4
    assert quick_plan(workload_of(), NOWHERE / "else").contents == contents[0]


def test_a_whole_one_measures_the_grid() -> None:
    """It is no quick one, and takes two processes for the operators and two for each model in each round."""
    plan = standard_plan(("q8_0",), NOWHERE, n_rounds=2)
    assert plan.shapes == standard_shapes(("q8_0",))
    assert not plan.is_quick
    assert plan.n_steps == 2 * (2 + 2 * len(plan.compositions))


REFERENCES = reference_architectures()

#: Caches that the weights must not fit into, or a calibration learns nothing of memory.
CACHE_BYTES = 96 << 20


def dimensions(of: Architecture) -> tuple[int, ...]:
    return of.n_layers, of.n_embd, of.n_ff, of.n_heads, of.n_kv_heads


def test_none_is_of_the_catalogue() -> None:
    """A forecast of a workload of the catalogue rests on no measurement of it: names and sizes are others."""
    known = {dimensions(find(name)) for name in names()}
    assert not {dimensions(architecture) for architecture, _ in REFERENCES} & known
    assert not {architecture.name for architecture, _ in REFERENCES} & set(names())


@pytest.mark.parametrize(("architecture", "quantization"), REFERENCES, ids=lambda each: getattr(each, "name", each))
def test_each_is_a_graph_beyond_the_caches(architecture: Architecture, quantization: str) -> None:
    """Its weights can be written and run, and are read from memory."""
    weights = synthetic_weights(architecture, quantization, cache_dir=Path("/nowhere"))
    workload = llama_workload(weights, find_scenario("p96-g12"))
    shapes = phase_shapes(workload, Phase.DECODE)
    products = [each for each in shapes.elements() if each.op.startswith("MUL_MAT")]
    assert streamed_bytes(shapes) > CACHE_BYTES
    n_of_layer = 7 if architecture.moe is None else 12
    assert len(products) == n_of_layer * architecture.n_layers + 1


def test_their_weights_are_the_same_on_every_machine(tmp_path: Path) -> None:
    """Nothing is written."""
    here, there = reference_weights(cache_dir=tmp_path), reference_weights(cache_dir=tmp_path / "board")
    assert here == there
    assert [each.name for each in here] == [f"{each.name}-{quantization}" for each, quantization in reference_models()]
    assert not list(tmp_path.iterdir())


def test_those_of_a_quick_calibration_have_fewer_layers() -> None:
    whole = {architecture.name: architecture for architecture, _ in REFERENCES}
    for small in quick_architectures():
        assert 2 <= small.n_layers < whole[small.name.rpartition("-")[0]].n_layers
