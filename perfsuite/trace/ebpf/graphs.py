"""Which graph each evaluation computed, and which node of it each operator is, from what the eBPF recorder saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import NOTHING, Ints
from perfsuite.records.events import Node
from perfsuite.trace.ebpf.nodes import NodeNamer, Structures, latest
from perfsuite.trace.ebpf.operators import Operators
from perfsuite.trace.operators import is_empty

_Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphsFound:
    """What the operators of a log are."""

    graphs: tuple[tuple[Node, ...], ...]
    #: By evaluation, and by operator in the order of `Operators`: position of the graph; NOTHING where none is known.
    of_evaluation: Ints
    graph: Ints
    #: By operator: position of its node in the graph.
    node: Ints
    #: By operator: whether its tensor has no elements, so that nothing is computed; it is no node.
    is_empty: npt.NDArray[np.bool_]
    #: Operators of thread 0 whose structure is not known.
    n_unknown: int


def find_graphs(operators: Operators, structures: Structures, is_doubtful: npt.NDArray[np.bool_]) -> GraphsFound:
    """Find out what each evaluation computed, by the operators of thread 0 in their order.

    An evaluation that is doubtful, some of whose operators may be missing, is taken for a part of a graph that another
    one shows whole, where it fits one.
    """
    first = np.flatnonzero((operators.thread == 0) & (operators.evaluation != NOTHING))
    first = first[np.lexsort((operators.start_ns[first], operators.evaluation[first]))]
    namer = NodeNamer(structures)
    names = namer.names(operators, first)
    computes = np.array([not is_empty(node) for node in namer.nodes], np.bool_)[names]
    without, first, names = first[~computes], first[computes], names[computes]
    found = _Evaluations(names, operators.evaluation[first], is_doubtful)
    node = _nodes(operators, first, found.places, found.of_evaluation)
    known = operators.evaluation != NOTHING
    graph = np.full(node.size, NOTHING, np.int64)
    if found.of_evaluation.size:
        graph[known] = found.of_evaluation[operators.evaluation[known]]
    return GraphsFound(
        graphs=tuple(tuple(namer.nodes[name] for name in each) for each in found.graphs),
        of_evaluation=found.of_evaluation,
        graph=graph,
        node=node,
        is_empty=_same_as(operators, without),
        n_unknown=namer.n_unknown,
    )


class _Evaluations:
    def __init__(self, names: Ints, evaluation: Ints, is_doubtful: npt.NDArray[np.bool_]) -> None:
        self.graphs: list[tuple[int, ...]] = []
        self.of_evaluation = np.full(is_doubtful.size, NOTHING, np.int64)
        #: By operator of thread 0: position of its node.
        self.places = np.zeros(names.size, np.int64)
        self._numbers: dict[bytes, int] = {}
        bounds = np.searchsorted(evaluation, np.arange(is_doubtful.size + 1))
        doubtful = []
        for each in np.flatnonzero(bounds[1:] > bounds[:-1]).tolist():
            first, last = int(bounds[each]), int(bounds[each + 1])
            self.places[first:last] = np.arange(last - first)
            if is_doubtful[each]:
                doubtful.append((each, first, last))
            else:
                self.of_evaluation[each] = self._whole(names[first:last])
        for each, first, last in doubtful:
            self.of_evaluation[each] = self._part(names[first:last], self.places[first:last])

    def _whole(self, names: Ints) -> int:
        number = self._numbers.setdefault(names.tobytes(), len(self.graphs))
        if number == len(self.graphs):
            self.graphs.append(tuple(names.tolist()))
        return number

    def _part(self, names: Ints, places: Ints) -> int:
        """Return the graph that the operators are, or are a part of, and set their places in it."""
        if names.tobytes() in self._numbers:
            return self._numbers[names.tobytes()]
        for number, graph in enumerate(self.graphs):
            found = _places_in(graph, names.tolist())
            if found is not None:
                places[:] = found
                return number
        return self._whole(names)


def _places_in(graph: Sequence[int], part: Sequence[int]) -> list[int] | None:
    """Return where the nodes of a part are in a graph, in their order; None where they are not all there."""
    found, at = [], 0
    for name in part:
        try:
            at = graph.index(name, at)
        except ValueError:
            return None
        found.append(at)
        at += 1
    return found


def _nodes(operators: Operators, first: npt.NDArray[np.intp], places: Ints, of_evaluation: Ints) -> Ints:
    """Return each operator's node: that of thread 0's operator at the same address in the same evaluation.

    Where thread 0's own record was lost, another evaluation of the same graph shows it.
    """
    node = np.full(operators.address.size, NOTHING, np.int64)
    node[first] = places
    others = np.flatnonzero((operators.thread != 0) & (operators.evaluation != NOTHING))
    if not first.size or not others.size:
        return node
    for by in (operators.evaluation, of_evaluation[np.maximum(operators.evaluation, 0)]):
        missing = others[node[others] == NOTHING]
        known = _latest_equal(operators.address[first], by[first], operators.address[missing], by[missing])
        node[missing] = np.where(known == NOTHING, NOTHING, places[np.maximum(known, 0)])
    return node


def _same_as(operators: Operators, chosen: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    address, evaluation = operators.address, operators.evaluation
    same: npt.NDArray[np.bool_] = _latest_equal(address[chosen], evaluation[chosen], address, evaluation) != NOTHING
    return same


def _latest_equal(known: _Addresses, known_in: Ints, asked: _Addresses, asked_in: Ints) -> Ints:
    found = latest(known, known_in, asked, asked_in)
    if not known.size:
        return found
    is_equal = known_in[np.maximum(found, 0)] == asked_in
    return np.where((found != NOTHING) & is_equal, found, NOTHING)
