"""Who computes what an operator reads: edges between the operators of a graph, by their sources' addresses.

A source comes from the last earlier operator that wrote the memory that it is, or is a view of; where several have
written to it by turns and none of them has read it, as keys and values go into a cache, from all of them. One that
writes in place, over what it reads, waits for all that read it before, too. A source that no operator has written is a
constant: a weight, an input, a cache as the last step left it.

How many bytes an operator reads and writes: those of its sources and its result, but of tables only the rows used.

    tensor           (elements - 1) strides apart, and one element (a block of a quantised row)
    GET_ROWS         reads as many rows of the table as it returns
    SET_ROWS         writes as many rows as it is given; the table behind them stays where it is
    MUL_MAT_ID       reads of E experts' matrices, of which n tokens choose u each, E (1 - (1 - u / E)^n): the
                     different ones, were all as likely
    FLASH_ATTN_EXT   is not known: the cache is padded, and masked positions are skipped

*Source*: ggml.c of llama.cpp, ``ggml_nbytes``; ggml-cpu/ops.cpp, ``ggml_compute_forward_flash_attn_ext``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import networkx as nx

from perfsuite.records.events import Node, Tensor
from perfsuite.workload.ggml_types import GGML_TYPES


def tensor_bytes(tensor: Tensor) -> int | None:
    """Return from where to where a tensor reaches, holes and all; None for a type of unknown size."""
    known = GGML_TYPES.get(tensor.type.upper())
    if known is None:
        return None
    if min(tensor.ne) < 1:
        return 0
    row_bytes = -(-tensor.ne[0] // known.block_values) * known.block_bytes
    if known.block_values == 1:
        row_bytes = known.block_bytes + (tensor.ne[0] - 1) * tensor.nb[0]
    return row_bytes + sum((size - 1) * stride for size, stride in zip(tensor.ne[1:], tensor.nb[1:], strict=True))


def operator_bytes(node: Node) -> int | None:
    """Return what one computation of an operator moves at least once; None where that is not known."""
    if node.op == "FLASH_ATTN_EXT":
        return None
    is_scattered = node.op == "SET_ROWS" and node.sources
    result = _rows_bytes(node.tensor, prod(node.sources[0].ne[1:])) if is_scattered else tensor_bytes(node.tensor)
    return _total((result, *(_source_bytes(node, place) for place in range(len(node.sources)))))


def _source_bytes(node: Node, place: int) -> int | None:
    source = node.sources[place]
    if node.op == "GET_ROWS" and place == 0:
        return _rows_bytes(source, prod(node.tensor.ne[1:]))
    if node.op == "SET_ROWS" and place > 1:
        return 0
    if node.op == "MUL_MAT_ID" and place == 0 and len(node.sources) > 2:
        whole, n_experts = tensor_bytes(source), source.ne[2]
        n_used, n_tokens = node.sources[2].ne[:2]
        read_ratio = 1.0 - (1.0 - min(1.0, n_used / max(1, n_experts))) ** n_tokens
        return None if whole is None else round(n_experts * read_ratio) * (whole // max(1, n_experts))
    return tensor_bytes(source)


def _rows_bytes(table: Tensor, n_rows: int) -> int | None:
    known = GGML_TYPES.get(table.type.upper())
    return None if known is None else n_rows * -(-table.ne[0] // known.block_values) * known.block_bytes


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
            if key not in writers:  # of several views of one tensor the one that shows the most of it
                constants[key] = max(constants.get(key, source), source, key=lambda each: tensor_bytes(each) or 0)
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
    """Return what identifies the memory of a tensor; None where nothing does."""
    return tensor.root if by_address else _DECORATION.sub("", tensor.name) or None


def _counted(constants: dict[object, Tensor]) -> Constants:
    weights = [each for each in constants.values() if _WEIGHT.search(each.name)]
    return Constants(
        n=len(constants),
        n_bytes=_total(map(tensor_bytes, constants.values())),
        n_weights=len(weights),
        weights_bytes=_total(map(tensor_bytes, weights)),
    )


def _total(sizes: Iterable[int | None]) -> int | None:
    known = list(sizes)
    return None if None in known else sum(size for size in known if size is not None)


_END = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """When an operator usually runs, from its graph's first entry on."""

    start_ns: float
    time_ns: float

    @property
    def end_ns(self) -> float:
        return self.start_ns + self.time_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Siblings:
    """Operators that read what one operator made, do not depend on one another, and run one after the other."""

    #: The operator whose result they share.
    shared: int
    members: tuple[int, ...]
    #: Their sum, and what would be saved if they took no longer than the longest of them.
    time_ns: float
    saving_ns: float


def critical_path(digraph: nx.DiGraph[int], times_ns: Mapping[int, float]) -> tuple[int, ...]:
    """Return the path that takes the longest; an operator without a time takes none.

        serial    = sum of t_i                     one operator after the other, as they are computed
        critical  = max over paths of sum of t_i   each operator as soon as what it reads is there
        gain     <= serial / critical

    The bound holds for operators that take as long side by side as alone: with processors and bandwidth of their own.
    """
    weighted: nx.DiGraph[int] = nx.DiGraph()
    for node in digraph:
        weighted.add_edge(node, _END, ns=times_ns.get(node, 0.0))
    for origin, target in digraph.edges:
        weighted.add_edge(origin, target, ns=times_ns.get(origin, 0.0))
    return tuple(each for each in nx.dag_longest_path(weighted, weight="ns") if each != _END)


def siblings_of(digraph: nx.DiGraph[int], intervals: Mapping[int, Interval]) -> tuple[Siblings, ...]:
    """Return the groups of siblings in the order of execution, none of them within another."""
    above = _ancestors(digraph)
    found: dict[tuple[int, ...], Siblings] = {}
    for origin in digraph:
        for members in _independent(sorted(digraph.successors(origin)), above):
            for group in _apart(members, intervals):
                if len(group) > 1 and group not in found:
                    times_ns = [intervals[each].time_ns for each in group]
                    saving_ns = sum(times_ns) - max(times_ns)
                    found[group] = Siblings(shared=origin, members=group, time_ns=sum(times_ns), saving_ns=saving_ns)
    within = {one for one in found for other in found if set(one) < set(other)}
    return tuple(found[group] for group in sorted(found.keys() - within))


def _ancestors(digraph: nx.DiGraph[int]) -> dict[int, int]:
    """Return for each operator those that it depends on, one bit each."""
    above: dict[int, int] = {}
    for node in nx.topological_sort(digraph):
        above[node] = 0
        for before in digraph.predecessors(node):
            above[node] |= above[before] | 1 << before
    return above


def _independent(readers: Sequence[int], above: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
    """Sort the readers of one result into groups of which none depends on another, in the order of execution."""
    groups: list[list[int]] = []
    for reader in readers:
        free = (group for group in groups if not any(above[reader] >> each & 1 for each in group))
        if (group := next(free, None)) is None:
            groups.append(group := [])
        group.append(reader)
    yield from map(tuple, groups)


def _apart(members: Sequence[int], intervals: Mapping[int, Interval]) -> Iterator[tuple[int, ...]]:
    """Yield the members that run one after the other: which overlap the one before by less than half of either."""
    group: list[int] = []
    for each in (member for member in members if member in intervals):
        if group:
            before, own = intervals[group[-1]], intervals[each]
            overlap_ns = min(before.end_ns, own.end_ns) - max(before.start_ns, own.start_ns)
            if overlap_ns > 0.5 * min(before.time_ns, own.time_ns):
                continue
        group.append(each)
    yield tuple(group)
