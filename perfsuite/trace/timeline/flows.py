"""Arrows from an operator to the kernels that compute it.

An arrow begins at the first slice of the operator, over all threads, and passes through its kernels in the order of
their starts. A kernel belongs to the operator of its evaluation; where it does not know its evaluation, to the last
one that began before it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from perfsuite.records.engine_trace import NOTHING, Events, Ints
from perfsuite.trace.timeline.tracks import Arrow


def flows(operators: Events, kernels: Events) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the arrows of operators, then of kernels: number of the arrow and what it does, 0 where there is none.

    The events of either are in the order of their starts.
    """
    origins = _origins(operators, kernels)
    led = np.flatnonzero(origins >= 0)
    first, number = np.unique(origins[led], return_inverse=True)
    operator_flow = np.zeros(len(operators), dtype=np.int64)
    operator_flow[first] = np.arange(1, len(first) + 1)
    kernel_flow = np.zeros(len(kernels), dtype=np.int64)
    kernel_flow[led] = number + 1
    kernel_arrow = np.where(kernel_flow > 0, int(Arrow.PASSES), 0)
    last = np.zeros(len(first), dtype=np.int64)
    last[number] = led
    kernel_arrow[last] = Arrow.ENDS
    return operator_flow, np.where(operator_flow > 0, int(Arrow.BEGINS), 0), kernel_flow, kernel_arrow


def _origins(operators: Events, kernels: Events) -> Ints:
    """Return for each kernel the position of its operator's first slice; -1 where there is none."""
    found = np.full(len(kernels), -1, dtype=np.int64)
    if not len(operators) or not len(kernels):
        return found
    places = _places(operators, kernels)
    operator_place, kernel_place = places[: len(operators)], places[len(operators) :]
    knows = kernels["evaluation"] != NOTHING
    has_node = kernels["node"] != NOTHING
    by_evaluation = has_node & knows
    found[by_evaluation] = _same_evaluation(
        _paired(operator_place, operators["evaluation"]),
        _paired(kernel_place[by_evaluation], kernels["evaluation"][by_evaluation]),
    )
    by_time = has_node & ~knows
    found[by_time] = _last_before(operators, operator_place, kernels[by_time], kernel_place[by_time])
    return found


def _places(operators: Events, kernels: Events) -> Ints:
    """Number the nodes of all graphs through."""
    graph = np.concatenate([operators["graph"], kernels["graph"]]).astype(np.int64)
    node = np.concatenate([operators["node"], kernels["node"]]).astype(np.int64)
    places: Ints = graph * (int(node.max()) + 2) + node
    return places


def _paired(place: Ints, evaluation: npt.NDArray[np.int32]) -> Ints:
    paired: Ints = (evaluation.astype(np.int64) << 32) + place
    return paired


def _same_evaluation(operator_keys: Ints, kernel_keys: Ints) -> Ints:
    keys, first = np.unique(operator_keys, return_index=True)
    at = np.minimum(np.searchsorted(keys, kernel_keys), len(keys) - 1)
    return np.where(keys[at] == kernel_keys, first[at], -1)


def _last_before(operators: Events, operator_place: Ints, kernels: Events, kernel_place: Ints) -> Ints:
    """Find each kernel's operator by time: the last one of its node that began before it, or with it."""
    n_operators = len(operators)
    place = np.concatenate([operator_place, kernel_place])
    start_ns = np.concatenate([operators["start_ns"], kernels["start_ns"]])
    order = np.lexsort((np.arange(len(place)) >= n_operators, start_ns, place))
    last = np.maximum.accumulate(np.where(order < n_operators, np.arange(len(order)), -1))
    candidate = np.where(last >= 0, order[last], -1)
    candidate[place[candidate] != place[order]] = -1
    found = np.empty(len(order), dtype=np.int64)
    found[order] = candidate
    return _first_of_evaluation(operators, operator_place, found[n_operators:])


def _first_of_evaluation(operators: Events, place: Ints, found: Ints) -> Ints:
    keys = _paired(place, operators["evaluation"])
    unique, first = np.unique(keys, return_index=True)
    known = found >= 0
    found[known] = first[np.searchsorted(unique, keys[found[known]])]
    return found
