"""The architectures from which a calibration learns what the engine adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.expectation.timing.calibration_plan import (
    quick_architectures,
    reference_architectures,
    reference_models,
    reference_weights,
)
from perfsuite.expectation.timing.engine_factors import streamed_bytes
from perfsuite.expectation.timing.engine_times import phase_shapes
from perfsuite.records.events import Phase
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.catalog import find, names
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import synthetic_weights

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
