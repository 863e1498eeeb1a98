"""Reading ggml's tensors out of raw bytes."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.testing.bpf_logs import RawTensor, tensor_layout
from perfsuite.trace.ebpf.nodes import RawOperator, StructureReader

LAYOUT = tensor_layout()
SOURCE = RawTensor(address=0x10, name="weight", type="q8_0", ne=(32, 2, 1, 1))
ADDED = RawTensor(address=0x20, name="sum-3", op="ADD", sources=(SOURCE,))


def read(tensor: RawTensor, *, changes: dict[int, bytes] | None = None) -> RawOperator:
    raw = bytearray(b"".join(each.raw(LAYOUT) for each in (tensor, *tensor.sources)))
    for at, content in (changes or {}).items():
        raw[at : at + len(content)] = content
    return StructureReader(LAYOUT).operator(tensor.address, memoryview(bytes(raw)))


@pytest.mark.parametrize(
    ("op", "param", "expected"), [("ADD", 5, "ADD"), ("UNARY", 1, "SILU"), ("GLU", 1, "SWIGLU"), ("GLU", 0, "REGLU")]
)
def test_operators_are_named_as_ggml_names_them(op: str, param: int, expected: str) -> None:
    found = read(replace(ADDED, op=op, op_param=param))
    assert (found.op_name, found.node.op) == (op, expected)


def test_the_root_of_a_view_is_what_it_views() -> None:
    assert (read(ADDED).node.tensor.root, read(replace(ADDED, view_src=0x99)).node.tensor.root) == (0x20, 0x99)
    raw = memoryview(ADDED.raw(LAYOUT))
    found = StructureReader(LAYOUT).operator(0x20, raw)
    assert (found.node.sources, found.source_addresses) == ((), (0x10,))
    with pytest.raises(MeasurementError, match="op_params of UNARY is 7, expected less than 2"):
        read(replace(ADDED, op="UNARY", op_param=7))


@pytest.mark.parametrize(
    ("at", "raw", "field"),
    [
        (LAYOUT.op_at, struct.pack("=i", 900), "op is 900, expected less than 9"),
        (LAYOUT.ne_at, struct.pack("=q", -4), "ne is "),
        (LAYOUT.nb_at, struct.pack("=Q", 3), "nb is "),
        (LAYOUT.name_at, b"\x01\x02\x00", "name is "),
    ],
)
def test_what_no_tensor_can_be_is_refused(at: int, raw: bytes, field: str) -> None:
    """A field that is out of its bounds shows that the running library's struct is another one."""
    with pytest.raises(MeasurementError, match="struct ggml_tensor of the running library is not the one of") as error:
        read(ADDED, changes={at: raw})
    assert field in str(error.value)
