"""Who computes what an operator reads: edges between the operators of a graph, by their sources' addresses.

A source comes from the last earlier operator that wrote the memory that it is, or is a view of; where several have
written to it by turns and none of them has read it, as keys and values go into a cache, from all of them. One that
writes in place, over what it reads, waits for all that read it before, too. A source that no operator has written is a
constant: a weight, an input, a cache as the last step left it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfsuite.records.events import Node, Tensor
from perfsuite.trace.graph.bytes import tensor_bytes

#: What ggml adds to the name of a tensor that another one is seen as.
_DECORATION = re.compile(r"( \((view|reshaped|permuted|transposed)\))+$")
_WEIGHT = re.compile(r"\.(weight|bias)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What the operators of a graph read and none of them computes."""

    n: int
    #: Of all, and of those that are weights; each tensor once. None where the size of a type is not known.
    n_bytes: int | None
    n_weights: int
    weights_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the sources of a graph's operators come from."""

    #: Positions of the operator that writes and of the one that reads, or that reads and that writes over it, in order,
    #: each pair once.
    edges: tuple[tuple[int, int], ...]
    #: Those among them where the first computes what the second reads.
    reads: tuple[tuple[int, int], ...]
    constants: Constants
    #: False where the recorder did not read addresses, and names had to do.
    by_address: bool


def sources_of(graph: Sequence[Node]) -> Sources:
    """Find where each source of a graph comes from."""
    by_address = any(source.root is not None for node in graph for source in node.sources)
    writers: dict[object, tuple[int, ...]] = {}
    readers: dict[object, list[int]] = {}
    edges: dict[tuple[int, int], None] = {}
    reads: dict[tuple[int, int], None] = {}
    constants: dict[object, Tensor] = {}
    for position, node in enumerate(graph):
        for source in node.sources:
            key = _key(source, by_address)
            if key is None:
                continue
            for writer in writers.get(key, ()):
                edges[writer, position] = reads[writer, position] = None
            if key not in writers:
                _keep_largest(constants, key, source)
            readers.setdefault(key, []).append(position)
        for reader in _write(writers, readers, node, position, by_address):
            edges[reader, position] = None
    return Sources(edges=tuple(edges), reads=tuple(reads), constants=_counted(constants), by_address=by_address)


def _write(
    writers: dict[object, tuple[int, ...]],
    readers: dict[object, list[int]],
    node: Node,
    position: int,
    by_address: bool,
) -> Sequence[int]:
    """Note a writer; return the readers whose source it writes over."""
    key = _key(node.tensor, by_address)
    if key is None:
        return ()
    if not any(_key(source, by_address) == key for source in node.sources):
        writers[key] = (*writers.get(key, ()), position)
        return ()
    writers[key] = (position,)
    return [each for each in readers.pop(key, ()) if each != position]


def _key(tensor: Tensor, by_address: bool) -> object:
    """Return what tells the memory of a tensor; None where nothing does."""
    if by_address:
        return tensor.root
    return _DECORATION.sub("", tensor.name) or None


def _keep_largest(constants: dict[object, Tensor], key: object, source: Tensor) -> None:
    """Of several views of one tensor keep the one that shows the most of it."""
    known = constants.get(key)
    if known is None or (tensor_bytes(known) or 0) < (tensor_bytes(source) or 0):
        constants[key] = source


def _counted(constants: dict[object, Tensor]) -> Constants:
    weights = [each for each in constants.values() if _WEIGHT.search(each.name)]
    return Constants(
        n=len(constants),
        n_bytes=_total(map(tensor_bytes, constants.values())),
        n_weights=len(weights),
        weights_bytes=_total(map(tensor_bytes, weights)),
    )


def _total(sizes: Iterator[int | None]) -> int | None:
    known = list(sizes)
    return None if None in known else sum(size for size in known if size is not None)
