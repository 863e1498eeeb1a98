"""Where ggml's graph allocator puts the tensors of a graph, and so how large its compute buffer becomes.

Leaves come first, in their order. A node takes over the memory of a source that nothing else will read, where its
operator may work in place and the two are laid out alike; otherwise it gets the smallest hole that is large enough, or
room behind everything. What nothing reads any more becomes a hole; outputs stay, and so does a leaf that nothing reads.

*Source*: ``ggml/src/ggml-alloc.c`` of llama.cpp, as shipped with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Every tensor begins at a multiple of this many bytes. *Source*: ``TENSOR_ALIGNMENT`` in ``ggml/src/ggml-impl.h``.
ALIGNMENT_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTensor:
    """A tensor of a graph, which the graph's other tensors name by its place in the graph."""

    #: None where it lies elsewhere, as does a row that is written into the KV cache.
    n_bytes: int | None
    #: What its operator reads, once for each time; empty for a leaf.
    sources: tuple[int, ...] = ()
    #: Sources whose memory it may take over, in the order in which the allocator tries them.
    in_place_of: tuple[int, ...] = ()
    is_leaf: bool = False
    is_output: bool = False


def place_tensors(graph: Sequence[GraphTensor]) -> tuple[int | None, ...]:
    """Return the offset in bytes of each tensor in the compute buffer, None for what lies elsewhere."""
    readers = _readers(graph)
    offsets: list[int | None] = [None] * len(graph)
    owned = [False] * len(graph)
    holes = _Holes()
    for at, tensor in enumerate(graph):
        if tensor.is_leaf and tensor.n_bytes is not None:
            offsets[at], owned[at] = holes.take(_aligned(tensor.n_bytes)), True
    for at, tensor in enumerate(graph):
        if tensor.is_leaf:
            continue
        if tensor.n_bytes is not None:
            lender = _lender(graph, tensor, readers, owned)
            if lender is None:
                offsets[at] = holes.take(_aligned(tensor.n_bytes))
            else:
                offsets[at], owned[lender] = offsets[lender], False
            owned[at] = True
        for source in tensor.sources:
            readers[source] -= 1
            if readers[source] == 0 and owned[source] and not graph[source].is_output:
                holes.give_back(offsets[source], _aligned(graph[source].n_bytes))
                owned[source] = False
    return tuple(offsets)


def reserved_bytes(graph: Sequence[GraphTensor], offsets: Sequence[int | None]) -> int:
    """Return the size of the buffer that holds every tensor at its offset."""
    ends = (
        at + _aligned(tensor.n_bytes)
        for tensor, at in zip(graph, offsets, strict=True)
        if at is not None and tensor.n_bytes is not None
    )
    return max(ends, default=0)


def _readers(graph: Sequence[GraphTensor]) -> list[int]:
    readers = [0] * len(graph)
    for tensor in graph:
        for source in tensor.sources:
            readers[source] += 1
    return readers


def _lender(graph: Sequence[GraphTensor], tensor: GraphTensor, readers: list[int], owned: list[bool]) -> int | None:
    fitting = (
        source
        for source in tensor.in_place_of
        if owned[source] and readers[source] == 1 and not graph[source].is_output
    )
    return next(fitting, None)


def _aligned(n_bytes: int | None) -> int:
    return -(-(n_bytes or 0) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


class _Holes:
    """The free ranges of a buffer in order, behind which all is free."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._end = 0

    def take(self, size: int) -> int:
        """Return the offset of the smallest hole that fits, of equal ones the last, or of the room behind all."""
        fitting = [(length, -at, index) for index, (at, length) in enumerate(self._ranges) if length >= size]
        if not fitting:
            self._end += size
            return self._end - size
        length, negative_at, index = min(fitting)
        left = (-negative_at + size, length - size)
        self._ranges[index : index + 1] = [left] if left[1] else []
        return -negative_at

    def give_back(self, at: int | None, size: int) -> None:
        """Free a range, joining it with the holes at its sides and with the room behind all."""
        if at is None or size == 0:
            return
        joined: list[tuple[int, int]] = []
        for start, length in sorted([*self._ranges, (at, size)]):
            if joined and sum(joined[-1]) == start:
                joined[-1] = (joined[-1][0], joined[-1][1] + length)
            else:
                joined.append((start, length))
        if joined and sum(joined[-1]) == self._end:
            self._end = joined.pop()[0]
        self._ranges = joined
