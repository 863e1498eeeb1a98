"""How tensors are joined to a graph: inputs, residuals, and what is worked on in place."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.expectation.cases import LlamaWorkload, llama_workload
from perfsuite.expectation.memory.allocator import GraphTensor
from perfsuite.expectation.memory.linked_graph import linked_graph
from perfsuite.expectation.memory.need import worst_batch
from perfsuite.workload.scenario import find_scenario

from ...catalogue_workloads import catalogue_weights


def workload_of(name: str, *, flash_attn: bool = True, type_name: str = "f16") -> LlamaWorkload:
    """A short workload of an architecture."""
    weights = catalogue_weights(name)
    return llama_workload(
        weights,
        find_scenario("siso"),
        flash_attn=flash_attn,
        type_k=type_name,
        type_v=type_name if flash_attn else "f16",
    )


def leaves(workload: LlamaWorkload) -> list[int | None]:
    """The sizes of the inputs in their order."""
    return [tensor.n_bytes for tensor in linked_graph(workload, worst_batch(workload)) if tensor.is_leaf]


def test_inputs_stand_in_the_order_of_their_first_reading() -> None:
    """Tokens, embeddings, positions, rows of keys and of values, mask of F16, rows that give logits; for 256 tokens."""
    n = 256
    assert leaves(workload_of("smollm2-135m-l2-q8_0")) == [4 * n, 4 * n * 576, 4 * n, 8 * n, 8 * n, 2 * n * n, 4 * n]


def test_without_flash_attention_each_value_has_a_row() -> None:
    """The cache holds values transposed, so every one of the 192 elements is stored by itself; the mask is of F32."""
    sizes = leaves(workload_of("smollm2-135m-l2-q8_0", flash_attn=False))
    assert sizes[4:6] == [8 * 256 * 192, 4 * 256 * 256]


def test_a_quantised_cache_brings_rotations() -> None:
    """The one for keys comes before the positions, for it is the first operand of its product."""
    sizes = leaves(workload_of("smollm2-135m-l2-q8_0", type_name="q8_0"))
    assert sizes[2:5] == [4 * 64 * 64, 4 * 256, 4 * 64 * 64]


def test_a_sliding_window_has_inputs_of_its_own() -> None:
    """Gemma 2 has two masks, of different widths where the window is a ring."""
    usual = workload_of("gemma-2-2b-l2-q8_0")
    ring = replace(usual, n_ctx=8192, settings=replace(usual.settings, swa_full=False))
    masks = [size for size in leaves(ring)[2:] if size in (2 * 512 * 8192, 2 * 512 * (4096 + 512))]
    assert masks == [2 * 512 * (4096 + 512), 2 * 512 * 8192]


def test_a_residual_is_read_by_the_norm_and_by_the_sum() -> None:
    """The embeddings' rows have two readers in the first layer, so that the norm cannot take over their memory."""
    graph = linked_graph(workload_of("smollm2-135m-l2-q8_0"), worst_batch(workload_of("smollm2-135m-l2-q8_0")))
    embeddings = next(at for at, tensor in enumerate(graph) if not tensor.is_leaf)
    assert sum(tensor.sources.count(embeddings) for tensor in graph) == 2


def test_a_rotary_embedding_of_another_view_is_not_in_place() -> None:
    """Queries are reshaped to heads before they are turned: in place the engine works on a tensor itself only."""
    small = workload_of("smollm2-135m-l2-q8_0")
    graph = linked_graph(small, worst_batch(small))
    turned = [tensor for tensor in graph if _reads_positions(graph, tensor)]
    assert turned
    assert all(tensor.in_place_of == () for tensor in turned)


def test_queries_that_were_normalised_are_turned_in_place() -> None:
    """Their norm gave them the heads already."""
    normed = workload_of("qwen3-0.6b-l2-q8_0")
    graph = linked_graph(normed, worst_batch(normed))
    turned = [tensor for tensor in graph if _reads_positions(graph, tensor)]
    assert all(tensor.in_place_of == tensor.sources[:1] for tensor in turned)


def test_the_last_norm_and_the_logits_stay() -> None:
    """They are the graph's outputs, and nothing else is."""
    small = workload_of("gemma-2-2b-l2-q8_0")
    graph = linked_graph(small, worst_batch(small))
    outputs = [tensor.n_bytes for tensor in graph if tensor.is_output]
    assert outputs == [4 * 256 * 2304, 4 * 256 * 256000]


def _reads_positions(graph: tuple[GraphTensor, ...], tensor: GraphTensor) -> bool:
    """Positions are the third input."""
    third = [at for at, each in enumerate(graph) if each.is_leaf][2]
    return third in tensor.sources
