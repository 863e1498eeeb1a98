"""Whether the analytical graph is the graph that the engine ran: operator by operator, shape by shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.ggml_cost import TensorShape, cost_of
from perfsuite.expectation.graph import Operator
from perfsuite.expectation.op_cost import OpCost
from perfsuite.records.events import Node, Tensor
from perfsuite.trace.operators import RecordedOperator

_Key = tuple[str, str, int | None, TensorShape, tuple[TensorShape, ...], OpCost]

#: Names of tensors of the file and of an adapter; RoPE's factors are constants and no parameters.
_PARAMETER = re.compile(r"(?!rope_).+\.(weight|bias)(\.lora_[ab])?")
#: Names of the cache's tensors and of views into them, which a copy is not.
_CACHE = re.compile(r"cache_[kv]_l\d+( \((?!copy)\w+\))*")


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
