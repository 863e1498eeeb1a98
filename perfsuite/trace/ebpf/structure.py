"""Reads ggml's tensors out of raw bytes: what an operator is, what it makes, and from what."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from perfsuite.errors import MeasurementError
from perfsuite.records.events import Node, Tensor
from perfsuite.records.tensor_layout import TensorLayout

_ONES = (1, 1, 1, 1)


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

        Raises
        ------
        MeasurementError
            A field cannot be what the layout says: the engine's ``struct ggml_tensor`` is another one.
        """
        size = self._layout.tensor_bytes
        own = bytes(raw[:size])
        addresses = tuple(each for each in self._source_addresses(own) if each)
        n_told = len(raw) // size - 1
        sources = tuple(
            self._tensor(addresses[place], bytes(raw[(place + 1) * size : (place + 2) * size]))
            for place in range(min(n_told, len(addresses)))
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
            name=self._name(raw),
            type=kind.name,
            ne=(n0, n1, n2, n3),
            nb=(b0, b1, b2, b3),
            root=view_src or address,
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
        number, which = (
            *struct.unpack_from("=i", raw, layout.op_at),
            *struct.unpack_from("=i", raw, layout.op_params_at),
        )
        self._check("op", number, 0 <= number < len(layout.ops), f"less than {len(layout.ops)}")
        name = layout.ops[number]
        names = {"UNARY": layout.unary_ops, "GLU": layout.glu_ops}.get(name)
        if names is None:
            return name, name
        self._check(f"op_params of {name}", which, 0 <= which < len(names), f"less than {len(names)}")
        return name, names[which]

    def _source_addresses(self, raw: bytes) -> tuple[int, ...]:
        return struct.unpack_from(f"={self._layout.n_src}Q", raw, self._layout.src_at)

    def _check(self, field: str, seen: object, is_plausible: bool, expected: str) -> None:
        if not is_plausible:
            raise MeasurementError(
                f"struct ggml_tensor of the running library is not the one of {self._layout.version} (build "
                f"{self._layout.build_id}): {field} is {seen!r}, expected {expected}; read the layout from the library "
                "that the traced process has loaded"
            )
