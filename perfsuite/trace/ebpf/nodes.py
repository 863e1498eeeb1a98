"""What the operators that the eBPF recorder saw are: the structures that its log holds, each from its evaluation on."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from perfsuite.errors import MeasurementError
from perfsuite.records.bpf_log_file import BpfKind, BpfLog
from perfsuite.records.engine_trace import NOTHING, EventFlag, Ints
from perfsuite.records.events import Node, Tensor
from perfsuite.records.tensor_layout import TensorLayout
from perfsuite.trace.ebpf.intervals import Intervals
from perfsuite.trace.ebpf.operators import Operators


@dataclass(frozen=True, slots=True, kw_only=True)
class RawOperator:
    """A tensor that is computed, and its sources."""

    address: int
    #: As ``ggml_op_name`` spells it.
    op_name: str
    node: Node
    #: Addresses of the sources, in the same order.
    source_addresses: tuple[int, ...]


class StructureReader:
    """Reads structures of one build of ggml."""

    def __init__(self, layout: TensorLayout) -> None:
        self._layout = layout
        self._tensors: dict[tuple[int, bytes], Tensor] = {}

    def operator(self, address: int, raw: memoryview) -> RawOperator:
        """Read a tensor and its sources, which follow it.

        Raises MeasurementError: a field cannot be what the layout says: the engine's ``struct ggml_tensor`` is another
        one.
        """
        size = self._layout.tensor_bytes
        own = bytes(raw[:size])
        addresses = struct.unpack_from(f"={self._layout.n_src}Q", own, self._layout.src_at)
        addresses = tuple(each for each in addresses if each)
        n_known = len(raw) // size - 1
        sources = tuple(
            self._tensor(addresses[place], bytes(raw[(place + 1) * size : (place + 2) * size]))
            for place in range(min(n_known, len(addresses)))
        )
        op_name, op = self._op(own)
        return RawOperator(
            address=address,
            op_name=op_name,
            node=Node(tensor=self._tensor(address, own), op=op, sources=sources),
            source_addresses=addresses,
        )

    def _tensor(self, address: int, raw: bytes) -> Tensor:
        key = address, raw
        found = self._tensors.get(key)
        if found is None:
            found = self._tensors[key] = self._read(address, raw)
        return found

    def _read(self, address: int, raw: bytes) -> Tensor:
        layout = self._layout
        (number,) = struct.unpack_from("=i", raw, layout.type_at)
        self._check("type", number, 0 <= number < len(layout.types), f"less than {len(layout.types)}")
        n0, n1, n2, n3 = ne = struct.unpack_from("=4q", raw, layout.ne_at)
        self._check("ne", ne, all(0 <= each < 1 << 48 for each in ne), "dimensions of 0 or more")
        b0, b1, b2, b3 = nb = struct.unpack_from("=4Q", raw, layout.nb_at)
        kind = layout.types[number]
        is_size = not kind.block_bytes or b0 % kind.block_bytes == 0 or ne[0] <= 1 or 0 in nb
        self._check("nb", nb, is_size and max(nb) < 1 << 62, f"multiples of {kind.block_bytes} bytes ({kind.name})")
        (view_src,) = struct.unpack_from("=Q", raw, layout.view_src_at)
        return Tensor(
            name=self._name(raw), type=kind.name, ne=(n0, n1, n2, n3), nb=(b0, b1, b2, b3), root=view_src or address
        )

    def _name(self, raw: bytes) -> str:
        field = raw[self._layout.name_at : self._layout.name_at + self._layout.name_bytes]
        name, terminator, _ = field.partition(b"\0")
        is_text = bool(terminator) and all(byte >= 32 and byte != 127 for byte in name)
        self._check("name", field[:16], is_text, "text that ends with a zero byte")
        return name.decode(errors="replace")

    def _op(self, raw: bytes) -> tuple[str, str]:
        """Name the operator as ``ggml_op_desc`` does: an UNARY and a GLU by their first parameter."""
        layout = self._layout
        number, which = (struct.unpack_from("=i", raw, at)[0] for at in (layout.op_at, layout.op_params_at))
        self._check("op", number, 0 <= number < len(layout.ops), f"less than {len(layout.ops)}")
        name = layout.ops[number]
        names = {"UNARY": layout.unary_ops, "GLU": layout.glu_ops}.get(name)
        if names is None:
            return name, name
        self._check(f"op_params of {name}", which, 0 <= which < len(names), f"less than {len(names)}")
        return name, names[which]

    def _check(self, field: str, seen: object, is_plausible: bool, expected: str) -> None:
        if not is_plausible:
            raise MeasurementError(
                f"struct ggml_tensor of the running library is not the one of {self._layout.version} (build "
                f"{self._layout.build_id}): {field} is {seen!r}, expected {expected}; read the layout from the library "
                "that the traced process has loaded"
            )


_Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Structures:
    """The structures that a log holds, in the order of the file; the arrays are parallel to `operators`."""

    operators: tuple[RawOperator, ...]
    evaluation: Ints

    @property
    def addresses(self) -> _Addresses:
        return np.array([each.address for each in self.operators], np.uint64)


def structures_of(log: BpfLog, graphs: Intervals, reader: StructureReader) -> Structures:
    """Read the structures of a log.

    Raises MeasurementError: the engine's ``struct ggml_tensor`` is not what the layout says.
    """
    positions = log.positions(BpfKind.STRUCTURE)
    records = log.records[positions]
    read: dict[tuple[int, bytes], RawOperator] = {}
    operators = []
    for position, address in zip(positions.tolist(), records["subject"].tolist(), strict=True):
        raw = log.tail(position)
        key = address, bytes(raw)
        if key not in read:
            read[key] = reader.operator(address, raw)
        operators.append(read[key])
    tid = records["tid"].astype(np.int64)
    return Structures(operators=tuple(operators), evaluation=graphs.containing(records["ns"].astype(np.int64), tid))


class NodeNamer:
    """Numbers the nodes that occur: operators of the same structure, at whatever time, have the same number."""

    def __init__(self, structures: Structures) -> None:
        self._structures = structures
        self._numbers: dict[Node, int] = {}
        self.nodes: list[Node] = []
        self.n_unknown = 0

    def names(self, operators: Operators, chosen: npt.NDArray[np.intp]) -> Ints:
        address, evaluation = operators.address[chosen], operators.evaluation[chosen]
        own = latest(self._structures.addresses, self._structures.evaluation, address, evaluation)
        partner = self._partners(operators, chosen)
        self.n_unknown = int((own == NOTHING).sum())
        keys = np.stack([own, partner, np.where(own == NOTHING, address.view(np.int64), 0)], axis=1)
        keys = np.append(keys, (operators.flags[chosen] & EventFlag.FUSED)[:, np.newaxis], axis=1)
        unique, inverse = np.unique(keys, axis=0, return_inverse=True)
        numbers = [self._number(*map(int, row)) for row in unique]
        return np.array(numbers, np.int64)[inverse.reshape(-1)]

    def _partners(self, operators: Operators, chosen: npt.NDArray[np.intp]) -> Ints:
        partner = np.full(chosen.size, NOTHING, np.int64)
        fused = np.flatnonzero((operators.flags[chosen] & EventFlag.FUSED) != 0)
        products = ((place, each) for place, each in enumerate(self._structures.operators) if each.op_name == "MUL")
        sources = [(place, address) for place, each in products for address in each.source_addresses]
        if not sources or not fused.size:
            return partner
        places = np.array([place for place, _ in sources], np.int64)
        addresses = np.array([address for _, address in sources], np.uint64)
        asked = chosen[fused]
        evaluations = self._structures.evaluation[places]
        found = latest(addresses, evaluations, operators.address[asked], operators.evaluation[asked])
        partner[fused] = np.where(found == NOTHING, NOTHING, places[np.maximum(found, 0)])
        return partner

    def _number(self, own: int, partner: int, address: int, is_fused: int) -> int:
        node = self._node(own, partner, address, bool(is_fused))
        number = self._numbers.setdefault(node, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(node)
        return number

    def _node(self, own: int, partner: int, address: int, is_fused: bool) -> Node:
        known = self._structures.operators
        node = unknown_node(address % (1 << 64)) if own == NOTHING else known[own].node
        if not is_fused:
            return node
        if partner == NOTHING or own == NOTHING:
            return replace(node, fused_op="MUL")
        return _joined(known[own], known[partner])


def unknown_node(address: int) -> Node:
    """Return a node of which nothing but its tensor's address is known."""
    tensor = Tensor(name=hex(address), type="?", ne=(0, 0, 0, 0), nb=(0, 0, 0, 0), root=None)
    return Node(tensor=tensor, op="?", sources=())


def _joined(first: RawOperator, second: RawOperator) -> Node:
    """Return two operators that are computed in one go: what the second makes, from what either reads."""
    known = zip(second.node.sources, second.source_addresses, strict=False)
    others = (tensor for tensor, address in known if address != first.address)
    sources = (*first.node.sources, *others)
    return replace(first.node, tensor=second.node.tensor, sources=sources, fused_op=second.node.op)


def latest(known: _Addresses, known_in: Ints, asked: _Addresses, asked_in: Ints) -> Ints:
    """Return, for each address and evaluation, the place of what was known of that address last, by then."""
    if not known.size:
        return np.full(asked.size, NOTHING, np.int64)
    _, number = np.unique(np.concatenate([known, asked]), return_inverse=True)
    width = max(int(known_in.max(initial=0)), int(asked_in.max(initial=0))) + 2
    key = number.reshape(-1) * width + np.concatenate([known_in, asked_in]) + 1
    order = np.argsort(key[: known.size], kind="stable")
    place = np.searchsorted(key[: known.size][order], key[known.size :], side="right") - 1
    found = order[np.maximum(place, 0)]
    is_own = (place >= 0) & (known[found] == asked)
    return np.where(is_own, found, NOTHING)
