"""Reading ggml's tensors out of raw bytes, and norms and their weights that are computed one after the other."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.records.bpf_log_file import BpfKind, read_bpf_log
from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind
from perfsuite.testing.bpf_logs import CPU_GUID, BpfLogBuilder, RawTensor, small_nodes, tensor_layout
from perfsuite.testing.engine_traces import EPOCH_NS
from perfsuite.trace.ebpf.ebpf_trace import ebpf_trace
from perfsuite.trace.ebpf.nodes import RawOperator, StructureReader

NORM, SCALED, QUERY, OUT = small_nodes()


def traced(tmp_path: Path, tensors: Sequence[RawTensor], *, counter_names: tuple[str, ...] = ()) -> EngineTrace:
    """Return the trace of one graph on two threads: each operator takes 10 us, every 20 us; counters rise by 100."""
    log = BpfLogBuilder(counter_names=counter_names)
    log.add(BpfKind.TOKEN_BEGIN, 1000, subject=0xC0, value=1)
    log.add(BpfKind.GRAPH_BEGIN, 2000, subject=0xBACC, tail=CPU_GUID)
    for place, tensor in enumerate(tensors):
        from_ns = 10_000 + 20_000 * place
        log.structure(from_ns - 1, tensor)
        counted = ([101 * place], [101 * place + 100]) if counter_names else None
        for thread in range(2):
            log.operator(from_ns, from_ns + 10_000, tensor, thread=thread, counted=counted)
    log.add(BpfKind.GRAPH_END, 190_000, subject=0xBACC)
    log.add(BpfKind.TOKEN_END, 195_000, subject=0xC0)
    log.end(200_000)
    return ebpf_trace(read_bpf_log(log.write(tmp_path / "log")), tensor_layout())


def test_a_norm_and_its_weight_are_one_operator(tmp_path: Path) -> None:
    trace = traced(tmp_path, (NORM, SCALED, QUERY, OUT), counter_names=("cycles",))
    (graph,) = trace.graphs
    assert [(node.op, node.fused_op) for node in graph] == [("RMS_NORM", "MUL"), ("MUL_MAT", None), ("ADD", None)]
    assert graph[0].tensor.name == "attn_norm-0"
    assert [source.name for source in graph[0].sources] == ["embd", "blk.0.attn_norm.weight"]
    operators = trace.of(EventKind.OPERATOR)
    firsts = operators[operators["node"] == 0]
    assert sorted(firsts["thread"].tolist()) == [0, 1]
    assert set((firsts["start_ns"] - EPOCH_NS).tolist()) == {10_000}
    assert set((firsts["end_ns"] - EPOCH_NS).tolist()) == {40_000}
    assert ((firsts["flags"] & EventFlag.FUSED) != 0).all()
    assert trace.counters[firsts["counters"]].tolist() == [[200], [200]]
    assert len(operators) == 6


@pytest.mark.parametrize(
    "tensors",
    [
        (NORM, QUERY, SCALED, OUT),
        (NORM, replace(SCALED, sources=(NORM, replace(SCALED.sources[1], ne=(32, 1, 1, 1))))),
        (NORM, replace(SCALED, ne=(64, 2, 1, 1))),
        (NORM, replace(SCALED, op="ADD")),
        (replace(NORM, view_src=0x77), SCALED),
        (NORM, SCALED, replace(OUT, sources=(NORM, SCALED))),
    ],
    ids=["apart", "narrow", "shape", "sum", "view", "used-twice"],
)
def test_what_no_backend_computes_as_one_stays_two(tmp_path: Path, tensors: tuple[RawTensor, ...]) -> None:
    (graph,) = traced(tmp_path, tensors).graphs
    assert [node.fused_op for node in graph] == [None] * len(tensors)


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
