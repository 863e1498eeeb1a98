"""The compute buffer: the activations of the largest graph that the engine prepares for.

Before its first token llama.cpp lays out one graph of ``n = min(n_ctx, n_ubatch)`` tokens, all of which may give
logits, over a cache that is full. A later, smaller graph of as many nodes keeps the offsets of that one, and so touches
the beginnings of the same ranges only.

*Source*: ``sched_reserve`` in ``src/llama-context.cpp`` and ``ggml_gallocr_alloc_graph`` in ``ggml/src/ggml-alloc.c``
of llama.cpp, as shipped with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.expectation.graph import Batch
from perfsuite.expectation.memory.allocator import place_tensors, reserved_bytes
from perfsuite.expectation.memory.linked_graph import linked_graph

#: Memory is handed out by the kernel in pages of this size, when they are first written.
PAGE_BYTES = 4096


def worst_batch(workload: LlamaWorkload) -> Batch:
    """Return the evaluation that the engine prepares for: a full batch over a full cache, logits of every token."""
    n_tokens = min(workload.n_ctx, workload.n_ubatch)
    return workload.batch(workload.n_ctx, n_tokens=n_tokens, n_outputs=n_tokens)


def compute_bytes(workload: LlamaWorkload) -> int:
    """Return the size of the compute buffer, which the engine reserves when it makes a context.

    Raises ArchitectureError: the graph, or what its operators read, is not known.
    """
    graph = linked_graph(workload, worst_batch(workload))
    return reserved_bytes(graph, place_tensors(graph))


def touched_bytes(workload: LlamaWorkload, batches: Sequence[Batch]) -> int:
    """Return how much of the compute buffer `batches` write, in whole pages: what becomes resident of it."""
    prepared = place_tensors(linked_graph(workload, worst_batch(workload)))
    pages: set[int] = set()
    for batch in batches:
        graph = linked_graph(workload, batch)
        # A graph of another number of nodes is laid out anew.
        offsets = prepared if len(prepared) == len(graph) else place_tensors(graph)
        for tensor, at in zip(graph, offsets, strict=True):
            if at is not None and tensor.n_bytes:
                pages.update(range(at // PAGE_BYTES, (at + tensor.n_bytes - 1) // PAGE_BYTES + 1))
    return len(pages) * PAGE_BYTES
