"""How tensors are joined to a graph: inputs, residuals, and what is worked on in place."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from perfsuite.expectation.graph import KNOWN_GRAPHS, Operator, engine_graph
from perfsuite.expectation.graphs.operator import shape
from perfsuite.expectation.memory.linked_graph import Flow, GraphTensor, flow_of, linked_graph, place_tensors
from perfsuite.expectation.memory.need import worst_batch
from perfsuite.records.op_cost import NO_COST, OpCost
from perfsuite.workload.catalog import find, names

from ...catalogue_workloads import catalogue_workload


def leaf(n_bytes: int) -> GraphTensor:
    return GraphTensor(n_bytes=n_bytes, is_leaf=True)


def node(n_bytes: int | None, *sources: int, in_place: bool = False, is_output: bool = False) -> GraphTensor:
    """An operator's output; `in_place` where it may take over any of its sources."""
    return GraphTensor(n_bytes=n_bytes, sources=sources, in_place_of=sources if in_place else (), is_output=is_output)


@pytest.mark.parametrize(
    ("graph", "offsets"),
    [
        pytest.param((leaf(40), leaf(1), node(8, 0, 1)), (0, 64, 96), id="a tensor of 40 bytes takes 64"),
        pytest.param((leaf(32), node(32, 0), leaf(32), node(32, 1, 2)), (0, 64, 32, 0), id="leaves come before nodes"),
        pytest.param(
            (leaf(64), node(64, 0), node(64, 1), node(64, 2)), (0, 64, 0, 64), id="what was read becomes a hole"
        ),
        pytest.param((leaf(32), leaf(32), node(32, 0), node(32, 2)), (0, 32, 64, 0), id="a leaf may go"),
        pytest.param((leaf(32), leaf(32), node(64, 0), node(64, 2)), (0, 32, 64, 128), id="an unread leaf stays"),
        pytest.param(
            (leaf(64), node(64, 0), node(64, 1, in_place=True)), (0, 64, 64), id="in place of the only reader's source"
        ),
        pytest.param(
            (leaf(64), node(64, 0), node(64, 1, in_place=True), node(64, 2, 1, in_place=True)),
            (0, 64, 0, 0),
            id="not in place of what is read again",
        ),
        pytest.param(
            (leaf(32), node(32, 0, is_output=True), node(32, 1, in_place=True), node(32, 2), node(32, 3)),
            (0, 32, 0, 64, 0),
            id="an output is neither freed nor taken over",
        ),
        pytest.param(
            (leaf(64), leaf(32), leaf(32), leaf(32), node(None, 0, 2), node(32, 3), node(64, 1, 3, 5)),
            (0, 64, 96, 128, None, 96, 0),
            id="the smallest hole that fits",
        ),
        pytest.param(
            (leaf(32), leaf(32), leaf(32), node(None, 0, 1), node(64, 2)), (0, 32, 64, None, 0), id="holes join"
        ),
        pytest.param(
            (leaf(32), node(None, 0), leaf(32), node(32, 2)), (0, None, 32, 0), id="what lies elsewhere takes nothing"
        ),
    ],
)
def test_where_tensors_are_put(graph: tuple[GraphTensor, ...], offsets: tuple[int | None, ...]) -> None:
    assert place_tensors(graph) == offsets


FAMILIES = {find(name).gguf_architecture: f"{name}-l2-q8_0" for name in names() if not name.startswith("attention-")}
LLAMA = find("smollm2-135m")


def operator(role: str, op: str, *, parameter_bytes: int = 0) -> Operator:
    cost = OpCost(read_bytes=parameter_bytes, parameter_bytes=parameter_bytes) if parameter_bytes else NO_COST
    return Operator(role=role, op=op, layer=0, output=shape("f32", 4), sources=(), cost=cost)


def test_every_known_graph_is_followed() -> None:
    assert set(FAMILIES) == KNOWN_GRAPHS


@pytest.mark.parametrize("flash_attn", [True, False])
@pytest.mark.parametrize("name", FAMILIES.values())
def test_all_but_the_logits_and_the_unused_input_is_read(name: str, *, flash_attn: bool) -> None:
    """Nothing dangles: a tensor that nobody reads would never be freed. Beside inputs there are the operators alone."""
    workload = catalogue_workload(name, "siso", flash_attn=flash_attn)
    weights, batch = workload.weights, worst_batch(workload)
    graph = linked_graph(workload, batch)
    readers = Counter(source for tensor in graph for source in tensor.sources)
    unread = [at for at, tensor in enumerate(graph) if tensor.n_bytes is not None and not readers[at]]
    assert unread == [1, len(graph) - 1]
    operators = engine_graph(weights.architecture, weights.tensor_types, batch, workload.settings)
    assert sum(not tensor.is_leaf for tensor in graph) == len(operators)


@pytest.mark.parametrize(
    ("role", "op", "live", "expected"),
    [
        ("Qcur", "MUL_MAT", ("norm",), Flow(reads=("norm",), writes="q")),
        ("Qcur", "ROPE", ("qkv",), Flow(reads=("~qkv", "positions"), writes="q")),
        ("Kcur_rope", "ROPE", ("k",), Flow(reads=("k", "positions"), writes="k")),
        ("cache_v", "SET_ROWS", ("qkv",), Flow(reads=("~qkv", "v_rows"), writes=None)),
        ("cache_k_cpy", "CPY", (), Flow(reads=(), writes="k_copy")),
        ("cache_k_cpy", "CPY", ("k_copy",), Flow(reads=(), writes="v_copy")),
        ("ffn_swiglu", "SWIGLU", ("up",), Flow(reads=("up",), writes="ffn")),
        ("ffn_swiglu", "SWIGLU", ("gate", "up"), Flow(reads=("gate", "up"), writes="ffn")),
        ("l_out", "ADD", ("ffn", "x"), Flow(reads=("ffn", "x"), writes="x")),
        ("ffn_out", "ADD", ("moe", "shared"), Flow(reads=("moe", "shared"), writes="ffn")),
    ],
)
def test_what_is_live_decides_what_is_read(role: str, op: str, live: tuple[str, ...], expected: Flow) -> None:
    """One role reads other streams where other operators came before it."""
    assert flow_of(operator(role, op), live, LLAMA) == expected


def graph_of(name: str, **settings: Any) -> tuple[GraphTensor, ...]:
    workload = catalogue_workload(name, "siso", **settings)
    return linked_graph(workload, worst_batch(workload))


def leaves(graph: tuple[GraphTensor, ...]) -> list[int | None]:
    return [tensor.n_bytes for tensor in graph if tensor.is_leaf]


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({}, [4, 4 * 576, 4, 8, 8, 2 * 256, 4]),
        ({"flash_attn": False}, [4, 4 * 576, 4, 8, 8 * 192, 4 * 256, 4]),
        ({"type_k": "q8_0", "type_v": "q8_0"}, [4, 4 * 576, 64, 4, 64, 8, 8, 2 * 256, 4]),
    ],
    ids=["usual", "without flash attention", "quantised cache"],
)
def test_inputs_stand_in_the_order_of_their_first_reading(settings: dict[str, Any], sizes: list[int]) -> None:
    """Tokens, embeddings, positions, rows of keys and of values, mask of F16, rows that give logits; for 256 tokens.

    Without flash attention the cache holds values transposed, so every one of the 192 elements is stored by itself,
    and the mask is of F32. A quantised cache brings rotations of 64 x 64, of which that for keys comes before the
    positions, for it is the first operand of its product.
    """
    assert leaves(graph_of("smollm2-135m-l2-q8_0", **settings)) == [256 * size for size in sizes]


def test_a_sliding_window_has_inputs_of_its_own() -> None:
    """Gemma 2 has two masks, of different widths where the window is a ring."""
    usual = catalogue_workload("gemma-2-2b-l2-q8_0", "siso")
    ring = replace(usual, n_ctx=8192, settings=replace(usual.settings, swa_full=False))
    sizes = leaves(linked_graph(ring, worst_batch(ring)))[2:]
    masks = [size for size in sizes if size in (2 * 512 * 8192, 2 * 512 * (4096 + 512))]
    assert masks == [2 * 512 * (4096 + 512), 2 * 512 * 8192]


@pytest.mark.parametrize(("name", "is_in_place"), [("smollm2-135m-l2-q8_0", False), ("qwen3-0.6b-l2-q8_0", True)])
def test_a_rotary_embedding_of_another_view_is_not_in_place(name: str, is_in_place: bool) -> None:
    """Queries are reshaped to heads before they are turned: in place the engine works on a tensor itself only.

    Those that were normalised before are such tensors.
    """
    graph = graph_of(name)
    positions = [at for at, each in enumerate(graph) if each.is_leaf][2]
    turned = [tensor for tensor in graph if positions in tensor.sources]
    assert turned
    assert all(tensor.in_place_of == (tensor.sources[:1] if is_in_place else ()) for tensor in turned)
