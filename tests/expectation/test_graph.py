"""The analytical graph, from architectures alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.graph import KNOWN_GRAPHS, Batch, Operator, Settings, engine_graph, total_cost
from perfsuite.expectation.op_cost import row_bytes
from perfsuite.workload.catalog import find, names
from perfsuite.workload.tensors import tensor_specs
from perfsuite.workload.weights import Weights, resolve

LLAMA_LIKE = [name for name in names() if find(name).gguf_architecture in KNOWN_GRAPHS]
DECODE = Batch(n_tokens=1, n_outputs=1, n_used=65, n_ctx=256)
SMALL = resolve("smollm2-135m-q8_0", cache_dir=Path("/nowhere"))


def graph(weights: Weights, batch: Batch = DECODE, settings: Settings | None = None) -> tuple[Operator, ...]:
    """List the operators of a batch."""
    return engine_graph(weights.architecture, weights.tensor_types, batch, settings or Settings())


@pytest.mark.parametrize("name", LLAMA_LIKE)
def test_a_decode_step_reads_every_weight_once(name: str) -> None:
    """Each tensor of the file but the biases is the parameter of one operator; of the table one row is read."""
    weights = resolve(f"{name}-l2-q8_0", cache_dir=Path("/nowhere"))
    n_bytes = {
        spec.name: spec.n_rows * row_bytes(weights.tensor_types[spec.name], spec.ne[0])
        for spec in tensor_specs(weights.architecture)
        if not spec.name.endswith(".bias") and spec.name != "rope_freqs.weight"
    }
    table = n_bytes["token_embd.weight"]
    read_whole = sum(n_bytes.values()) - (0 if weights.architecture.tied_embeddings else table)
    assert total_cost(graph(weights)).parameter_bytes == read_whole + table // weights.architecture.n_vocab


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("name", LLAMA_LIKE)
def test_layers_are_alike(name: str, flash_attn: bool) -> None:
    """Each layer but the last has the same operators, and the last gathers the rows that give logits as well."""
    weights = resolve(f"{name}-l4-q4_0", cache_dir=Path("/nowhere"))
    operators = graph(weights, settings=Settings(flash_attn=flash_attn))
    layers = [[replace(each, layer=None) for each in operators if each.layer == layer] for layer in range(4)]
    assert layers[0] == layers[1] == layers[2]
    assert [each for each in layers[3] if each.op != "GET_ROWS"] == layers[0]
    assert sum(each.op == "GET_ROWS" for each in layers[3]) == 2


def test_roles_name_an_operator_of_a_layer_once() -> None:
    """No two operators of one layer share a role, so that a case id names one thing."""
    for settings in (Settings(), Settings(flash_attn=False)):
        counted = Counter((each.role, each.layer) for each in graph(SMALL, settings=settings))
        assert max(counted.values()) == 1


@given(st.integers(1, 600), st.integers(0, 3000))
def test_costs_grow_with_the_batch(n_tokens: int, n_past: int) -> None:
    """One more token in the batch makes neither FLOPs nor bytes fewer, and the weights are still read once."""
    few, more = (
        total_cost(graph(SMALL, Batch(n_tokens=n, n_outputs=1, n_used=n_past + n, n_ctx=4096)))
        for n in (n_tokens, n_tokens + 1)
    )
    assert more.flops > few.flops
    assert more.moved_bytes > few.moved_bytes
    table_row = 576 // 32 * 34
    assert more.parameter_bytes == few.parameter_bytes + table_row
    assert more.n_dispatches == few.n_dispatches


@given(st.integers(0, 5000), st.integers(1, 20))
def test_the_visible_cache_is_padded(n_used: int, n_blocks: int) -> None:
    """Attention works on a multiple of 256 positions that holds those in use, and no more than there are."""
    batch = Batch(n_tokens=1, n_outputs=1, n_used=n_used, n_ctx=256 * n_blocks)
    assert batch.n_kv % 256 == 0
    assert 256 <= batch.n_kv <= batch.n_ctx
    assert batch.n_kv == batch.n_ctx or n_used <= batch.n_kv < n_used + 256 + 256 * (n_used == 0)


def test_flash_attention_is_one_operator_instead_of_three() -> None:
    """Without flash attention a layer has two products and a softmax in its place."""
    ops = {
        flash_attn: Counter(each.op for each in graph(SMALL, settings=Settings(flash_attn=flash_attn)))
        for flash_attn in (True, False)
    }
    n_layers = SMALL.architecture.n_layers
    assert ops[True]["FLASH_ATTN_EXT"] == ops[False]["SOFT_MAX"] == n_layers
    assert ops[False]["MUL_MAT"] == ops[True]["MUL_MAT"] + 2 * n_layers


def test_the_graph_begins_with_the_table_and_ends_with_the_logits() -> None:
    """Before the first layer stands the gather of embeddings, behind the last a norm and the output matrix."""
    outside = [each.role for each in graph(SMALL) if each.layer is None]
    assert outside == ["embd", "result_norm", "result_output"]
    assert graph(SMALL)[0].role == "embd"
    assert graph(SMALL)[-1].output.ne == (49152, 1, 1, 1)


def test_a_batch_without_logits_computes_none() -> None:
    """A batch that gives no logits has its last operators on nothing: no FLOPs of the output matrix."""
    batch = Batch(n_tokens=512, n_outputs=0, n_used=512, n_ctx=1024)
    last = graph(SMALL, batch)[-1]
    assert (last.role, last.cost.flops, last.cost.written_bytes) == ("result_output", 0, 0)


@pytest.mark.parametrize("name", [name for name in names() if name not in LLAMA_LIKE])
def test_another_graph_is_refused(name: str) -> None:
    """An architecture whose graph is not known is named together with those that are."""
    weights = resolve(f"{name}-q8_0" if name != "gemma-2-2b" else "gemma-2-2b-f16", cache_dir=Path("/nowhere"))
    with pytest.raises(ArchitectureError, match=rf"{name}: the graph of '\w+' is not known; known are llama, qwen2"):
        graph(weights)


def test_a_tensor_that_the_file_lacks_is_named() -> None:
    """A file without a tensor that the graph needs is refused with the tensor's name."""
    types = {name: kind for name, kind in SMALL.tensor_types.items() if name != "blk.7.ffn_up.weight"}
    with pytest.raises(ArchitectureError, match=r"smollm2-135m: the file has no tensor blk\.7\.ffn_up\.weight"):
        engine_graph(SMALL.architecture, types, DECODE, Settings())
