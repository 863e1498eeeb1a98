"""The graph that an engine says it would compute, as operators with a cost, and whether it is the one that ran.

The roles are those of a recording, and the costs those of the one table of operators, so that a case that is enumerated
from it claims what is measured. An operator without a row in the table has no cost, and so no forecast.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from perfsuite.errors import ArchitectureError, PerfsuiteError
from perfsuite.expectation.graphs.operator import Operator, TensorShape
from perfsuite.expectation.llama_workload import GraphKey
from perfsuite.expectation.op_rules import cost_of
from perfsuite.records.events import Node, Tensor
from perfsuite.records.op_cost import NO_COST, OpCost
from perfsuite.trace.operators import RecordedOperator, timed_operators

#: An engine says no graph without outputs. That many are asked for instead, a number that no dimension of a model is.
STAND_IN_OUTPUTS = 251

#: The ids of the tokens that give logits, as releases call them; behind their gather everything has as many rows.
_OUTPUT_IDS = ("out_ids", "inp_out_ids")
#: Names of tensors of the file and of an adapter; RoPE's factors are constants and no parameters.
_PARAMETER = re.compile(r"(?!rope_).+\.(weight|bias)(\.lora_[ab])?")
#: Names of the tensors of caches, recurrent states among them, and of views into them, which a copy is not.
_CACHE = re.compile(r"cache_[krsv]_l\d+( \((?!copy)\w+\))*")


def said_operators(graph: Sequence[Node], key: GraphKey, whole: Sequence[Node] = ()) -> tuple[Operator, ...]:
    """Return the operators of a graph that was asked for by a key, with outputs that stand in for none.

    It sees no more of the cache than it attends to; `whole` is one that sees all of it, of which the sizes are.
    """
    caches = {_cache_of(each): each.sources[2].ne for each in whole if _is_store(each)}
    nodes = [_stored_whole(each, caches) for each in graph]
    if not key.is_first:
        nodes = list(_uncleared(nodes))
    if not key.n_outputs:
        nodes = list(_without_outputs(nodes))
    return tuple(
        Operator(
            role=each.role,
            op=each.op,
            layer=each.layer,
            output=shape_of(each.node.tensor),
            sources=tuple(map(shape_of, each.node.sources)),
            cost=_cost_or_none(each.node),
        )
        for each in timed_operators(nodes)
    )


def recorded_cost(node: Node) -> OpCost:
    """Cost a recorded operator by the convention of the expectation, from its own shapes and its sources' names."""
    names = tuple(source.name for source in node.sources)
    return cost_of(
        node.ops,
        shape_of(node.tensor),
        tuple(map(shape_of, node.sources)),
        weight_sources=tuple(place for place, name in enumerate(names) if _PARAMETER.fullmatch(name)),
        kv_sources=tuple(place for place, name in enumerate(names) if _CACHE.fullmatch(name)),
    )


def shape_of(tensor: Tensor) -> TensorShape:
    """Reduce a recorded tensor to type and dimensions."""
    return TensorShape(type=tensor.type.lower(), ne=tensor.ne)


def _cost_or_none(node: Node) -> OpCost:
    try:
        return recorded_cost(node)
    except ArchitectureError:
        return NO_COST


def _is_store(node: Node) -> bool:
    return node.op == "SET_ROWS" and len(node.sources) > 2 and bool(_CACHE.fullmatch(node.sources[2].name))


def _cache_of(node: Node) -> tuple[str, int]:
    """Return what the cache that is stored into is known by: a layer may have one of keys and one of an index."""
    return node.sources[2].name, node.sources[2].ne[0]


def _stored_whole(node: Node, caches: Mapping[tuple[str, int], tuple[int, int, int, int]]) -> Node:
    """Give what is stored into the whole cache."""
    if not _is_store(node) or (ne := caches.get(_cache_of(node))) is None:
        return node
    rows, places, cache = node.sources[:3]
    return replace(node, tensor=replace(node.tensor, ne=ne), sources=(rows, places, replace(cache, ne=ne)))


def _uncleared(graph: Sequence[Node]) -> Iterator[Node]:
    """Clear nothing where a state goes on: the graph that is asked for scales one in its place, before all else."""
    made: set[int | None] = set()
    for node in graph:
        is_clearing = node.op == "SCALE" and node.sources[0].root == node.tensor.root not in made
        if node.timed:
            made.add(node.tensor.root)
        if is_clearing:
            state = replace(node.sources[0], ne=(0, 1, 1, 1))
            yield replace(node, tensor=replace(node.tensor, ne=state.ne), sources=(state,))
        else:
            yield node


def _without_outputs(graph: Sequence[Node]) -> Iterator[Node]:
    """Give all that follows the gather of the outputs no rows, as the engine does in a batch that gives no logits."""
    after: set[int | None] = set()
    for node in graph:
        is_gather = any(source.name in _OUTPUT_IDS for source in node.sources)
        if not is_gather and not any(source.root in after for source in node.sources):
            yield node
            continue
        after.add(node.tensor.root)
        yield replace(
            node,
            tensor=_emptied(node.tensor),
            sources=tuple(
                _emptied(each) if each.root in after or each.name in _OUTPUT_IDS else each for each in node.sources
            ),
        )


def _emptied(tensor: Tensor) -> Tensor:
    first, *others = (0 if size == STAND_IN_OUTPUTS else size for size in tensor.ne)
    return replace(tensor, ne=(first, others[0], others[1], others[2]))


_Key = tuple[str, str, int | None, TensorShape, tuple[TensorShape, ...], OpCost]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDifference:
    """An operator that only one of two graphs has."""

    role: str
    #: Which side has it, with its place, shapes and cost, in one line.
    text: str
    #: Whether one graph lacks the role in a layer, or reads other parameters there; if not it is computed otherwise.
    is_other_work: bool


def graph_differences(
    expected: Sequence[Operator], recorded: Sequence[RecordedOperator]
) -> tuple[GraphDifference, ...]:
    """Compare two graphs by role, operator, layer, shapes and every part of the cost."""
    wanted = Counter((each.role, each.op, each.layer, each.output, each.sources, each.cost) for each in expected)
    seen = Counter(_recorded_key(operator) for operator in recorded)
    other = {role for role, *_ in _work(wanted) ^ _work(seen)}
    sides = (("expected and not recorded", wanted - seen), ("recorded and not expected", seen - wanted))
    return tuple(
        GraphDifference(role=key[0], text=f"{side}: {_line(key)}", is_other_work=key[0] in other)
        for side, surplus in sides
        for key in surplus
    )


def _work(operators: Counter[_Key]) -> frozenset[tuple[str, int | None, int]]:
    """Return what is done whichever way it is computed: each role of each layer, with what it reads of the file.

    A recorded operator whose cost is not known reads nothing of it.
    """
    parameter_bytes: Counter[tuple[str, int | None]] = Counter()
    for (role, _, layer, _, _, cost), number in operators.items():
        parameter_bytes[role, layer] += number * max(0, cost.parameter_bytes)
    return frozenset((role, layer, n_bytes) for (role, layer), n_bytes in parameter_bytes.items())


def _recorded_key(operator: RecordedOperator) -> _Key:
    sources = tuple(map(shape_of, operator.node.sources))
    try:
        cost = recorded_cost(operator.node)
    except ArchitectureError:
        cost = OpCost(flops=-1, read_bytes=-1, written_bytes=-1)
    return operator.role, operator.op, operator.layer, shape_of(operator.node.tensor), sources, cost


def _line(key: _Key) -> str:
    role, op, layer, output, sources, cost = key
    place = "" if layer is None else f" in layer {layer}"
    inputs = ", ".join(f"{source.type}{list(source.ne)}" for source in sources)
    return (
        f"{role}{place}: {op} {inputs} -> {output.type}{list(output.ne)}, {cost.flops} FLOPs, "
        f"{cost.read_bytes} B read ({cost.parameter_bytes} B parameters, {cost.kv_read_bytes} B KV), "
        f"{cost.written_bytes} B written ({cost.kv_written_bytes} B KV)"
    )


def traced_cost(operator: RecordedOperator) -> OpCost | None:
    """Cost an operator by the convention of the expectation; None where it has no rule for it or its types.

    Nor for fused attention: the convention counts the padded cache, of which the engine skips what is masked.
    """
    if operator.op == "FLASH_ATTN_EXT":
        return None
    try:
        return recorded_cost(operator.node)
    except (PerfsuiteError, IndexError, ValueError):  # an operator that is unknown, or whose sources were not read
        return None
