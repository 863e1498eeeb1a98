"""Reads what the native recorder holds of a run: its arrays as they are, and what they refer to."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from perfsuite.measure.llama_structs import RECORDER_ARRAYS, NativeNode, NativeTensor
from perfsuite.records.events import Node, Tensor

#: Of a router's choice: where its ids begin, of how many tokens they are, and how many each of these has.
_CHOICE_IDS = struct.Struct("<8xQ4xii4x")


def recorded_fields(library: ctypes.CDLL, recorder: ctypes.c_void_p | None) -> dict[str, Any]:
    """Return the fields of an `EngineRecord` that a recorder fills; all empty where there was none."""
    if not recorder:
        return {"graphs": (), "n_dropped": 0}
    arrays = {name: _array(library, recorder, *each) for name, each in RECORDER_ARRAYS.items()}
    return {
        "graphs": tuple(_graphs(library, recorder)),
        "n_dropped": int(library.ps_recorder_dropped(recorder)),
        **arrays,
        "expert_ids": _expert_ids(library, recorder, arrays["expert_choices"]),
        "backends": tuple(_names(library.ps_recorder_backend_name, recorder)),
    }


def _array(library: ctypes.CDLL, recorder: ctypes.c_void_p, function: str, row_bytes: int) -> bytes:
    n_rows = ctypes.c_uint64()
    rows = getattr(library, function)(recorder, ctypes.byref(n_rows))
    return ctypes.string_at(rows, n_rows.value * row_bytes) if n_rows.value else b""


def _expert_ids(library: ctypes.CDLL, recorder: ctypes.c_void_p, choices: bytes) -> bytes:
    """Return the ids of all choices, which lie one behind the other."""
    if not choices:
        return b""
    first, n_tokens, n_used = _CHOICE_IDS.unpack(choices[-_CHOICE_IDS.size :])
    ids = library.ps_recorder_expert_ids(recorder)
    return ctypes.string_at(ids, (first + n_tokens * n_used) * ctypes.sizeof(ctypes.c_int32))


def _graphs(library: ctypes.CDLL, recorder: ctypes.c_void_p) -> Iterator[tuple[Node, ...]]:
    devices = tuple(_names(library.ps_recorder_device_name, recorder))
    for graph in range(library.ps_recorder_n_graphs(recorder)):
        n_nodes = ctypes.c_int32()
        nodes = library.ps_recorder_nodes(recorder, graph, ctypes.byref(n_nodes))
        yield tuple(_node(nodes[index], devices) for index in range(n_nodes.value))


def _names(function: Any, recorder: ctypes.c_void_p) -> Iterator[str]:
    """Return the names that a function hands out by their numbers, up to the first that there is not."""
    number = 0
    while (name := function(recorder, number)) is not None:
        yield name.decode(errors="replace")
        number += 1


def _node(node: NativeNode, devices: Sequence[str]) -> Node:
    return Node(
        tensor=_tensor(node.tensor),
        op=node.op.decode(),
        timed=bool(node.timed),
        fused=bool(node.fused),
        sources=tuple(_tensor(node.sources[index]) for index in range(node.n_sources)),
        refused_by=tuple(name for bit, name in enumerate(devices) if node.refused_by >> bit & 1),
    )


def _tensor(tensor: NativeTensor) -> Tensor:
    return Tensor(
        name=tensor.name.decode(errors="replace"),
        type=tensor.type.decode(),
        ne=tuple(tensor.ne),
        nb=tuple(tensor.nb),
        root=tensor.root,
    )
