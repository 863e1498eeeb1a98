"""Builds logs of the eBPF recorder, record by record, and raw tensors as they would are in the engine's memory."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfsuite.records.bpf_log_file import (
    COUNTER_NAME_BYTES,
    EXPERTS_TAIL,
    GUID_BYTES,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    MAX_COUNTERS,
    PROBE_TAIL,
    THREAD_NAME_BYTES,
    VERSION,
    BpfFlag,
    BpfKind,
    EndReason,
)
from perfsuite.records.tensor_layout import TensorLayout, TensorType
from perfsuite.records.trace_levels import TraceLevel
from perfsuite.testing.engine_traces import EPOCH_NS

#: ``ggml_backend_cpu_guid``.
CPU_GUID = bytes.fromhex("aa67c74396e6a38ae3afea9236bcfc89")
MAIN_TID, WORKER_TID = 4711, 4712
ALL_LEVELS = TraceLevel(0xFF)

_RECORD = struct.Struct("=HHIqQqHHI")


def tensor_layout() -> TensorLayout:
    """Return ggml's layout on a 64-bit machine, with a few operators and types."""
    return TensorLayout(
        build_id="00ff",
        version="ggml 1",
        tensor_bytes=336,
        type_at=0,
        ne_at=16,
        nb_at=48,
        op_at=80,
        op_params_at=84,
        flags_at=148,
        src_at=152,
        n_src=10,
        view_src_at=232,
        data_at=248,
        name_at=256,
        name_bytes=64,
        ops=("NONE", "ADD", "MUL", "RMS_NORM", "MUL_MAT", "MUL_MAT_ID", "VIEW", "UNARY", "GLU"),
        unary_ops=("ABS", "SILU"),
        glu_ops=("REGLU", "SWIGLU"),
        types=(
            TensorType(name="f32", block_elements=1, block_bytes=4),
            TensorType(name="i32", block_elements=1, block_bytes=4),
            TensorType(name="q8_0", block_elements=32, block_bytes=34),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTensor:
    """A tensor of the engine, at an address."""

    address: int
    name: str
    op: str = "NONE"
    type: str = "f32"
    ne: tuple[int, int, int, int] = (64, 1, 1, 1)
    sources: tuple[RawTensor, ...] = ()
    #: What the tensor is a view of.
    view_src: int = 0
    op_param: int = 0

    def raw(self, layout: TensorLayout) -> bytes:
        """Return the bytes of the struct."""
        types = [each.name for each in layout.types]
        kind = layout.types[types.index(self.type)]
        raw = bytearray(layout.tensor_bytes)
        row_bytes = self.ne[0] // kind.block_elements * kind.block_bytes
        nb = (kind.block_bytes, row_bytes, row_bytes * self.ne[1], row_bytes * self.ne[1] * self.ne[2])
        struct.pack_into("=i", raw, layout.type_at, types.index(self.type))
        struct.pack_into("=4q", raw, layout.ne_at, *self.ne)
        struct.pack_into("=4Q", raw, layout.nb_at, *nb)
        struct.pack_into("=i", raw, layout.op_at, layout.ops.index(self.op))
        struct.pack_into("=i", raw, layout.op_params_at, self.op_param)
        struct.pack_into(f"={len(self.sources)}Q", raw, layout.src_at, *(each.address for each in self.sources))
        struct.pack_into("=Q", raw, layout.view_src_at, self.view_src)
        raw[layout.name_at : layout.name_at + len(self.name)] = self.name.encode()
        return bytes(raw)


def small_nodes() -> tuple[RawTensor, ...]:
    """Return a norm that is fused with its weight, a product, and a sum."""
    embedding, weight = RawTensor(address=0x1000, name="embd"), RawTensor(address=0x2000, name="blk.0.attn_norm.weight")
    norm = RawTensor(address=0x3000, name="norm-0", op="RMS_NORM", sources=(embedding,))
    scaled = RawTensor(address=0x3100, name="attn_norm-0", op="MUL", sources=(norm, weight))
    matrix = RawTensor(address=0x4000, name="blk.0.attn_q.weight", type="q8_0", ne=(64, 64, 1, 1))
    query = RawTensor(address=0x5000, name="Qcur-0", op="MUL_MAT", sources=(matrix, scaled))
    return norm, scaled, query, RawTensor(address=0x6000, name="l_out-0", op="ADD", sources=(query, embedding))


@dataclass(slots=True, kw_only=True)
class BpfLogBuilder:
    """Gathers records; times are ns after the epoch."""

    levels: TraceLevel = ALL_LEVELS
    layout: TensorLayout = field(default_factory=tensor_layout)
    counter_names: tuple[str, ...] = ()
    n_cpus: int = 2
    parts: list[bytes] = field(default_factory=list)

    def header(self) -> bytes:
        names = [name.encode().ljust(COUNTER_NAME_BYTES, b"\0") for name in self.counter_names]
        recorded = (EPOCH_NS, MAIN_TID, self.levels, 0, self.layout.tensor_bytes, self.n_cpus, len(names))
        fixed = HEADER.pack(MAGIC, VERSION, HEADER_BYTES, *recorded)
        return fixed + b"".join(names).ljust(MAX_COUNTERS * COUNTER_NAME_BYTES, b"\0")

    def add(
        self,
        kind: BpfKind,
        ns: int,
        *,
        tid: int = MAIN_TID,
        subject: int = 0,
        value: int = 0,
        cpu: int = 0,
        flags: int = 0,
        tail: bytes = b"",
    ) -> None:
        """Add one record, its tail filled up to a multiple of 8 bytes."""
        padded = tail + bytes(-len(tail) % 8)
        n_bytes = _RECORD.size + len(padded)
        self.parts.append(_RECORD.pack(kind, n_bytes, tid, EPOCH_NS + ns, subject, value, cpu, flags, 0) + padded)

    def graph(self, begin_ns: int, end_ns: int, *, guid: bytes = CPU_GUID) -> None:
        """Add the begin and the end of one graph; `guid` says on which backend."""
        self.add(BpfKind.GRAPH_BEGIN, begin_ns, subject=0xBACC, tail=guid.ljust(GUID_BYTES, b"\0"))
        self.add(BpfKind.GRAPH_END, end_ns, subject=0xBACC)

    def structure(self, ns: int, tensor: RawTensor, *, tid: int = MAIN_TID) -> None:
        """Add the raw tensor and its sources."""
        raw = b"".join(each.raw(self.layout) for each in (tensor, *tensor.sources))
        self.add(BpfKind.STRUCTURE, ns, tid=tid, subject=tensor.address, tail=raw)

    def operator(
        self,
        begin_ns: int,
        end_ns: int | None,
        tensor: RawTensor,
        *,
        thread: int = 0,
        flags: int = 0,
        counted: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> None:
        """Add an operator's begin, and its thread's arrival at the barrier unless `end_ns` is None."""
        tid, first, last = MAIN_TID + thread, b"", b""
        if counted:
            flags |= BpfFlag.HAS_COUNTERS
            first, last = (struct.pack(f"={len(each)}Q", *each) for each in counted)
        value = thread | 2 << 16
        where = {"tid": tid, "cpu": thread, "flags": flags}
        self.add(BpfKind.OPERATOR_BEGIN, begin_ns, subject=tensor.address, value=value, tail=first, **where)
        if end_ns is not None:
            self.add(BpfKind.BARRIER, end_ns, tail=last, **where)

    def experts(self, ns: int, tensor: RawTensor, ids: Sequence[Sequence[int]], *, first_token: int = 0) -> None:
        """Add the ids of some tokens of a batch, one row each; the batch has as many tokens as the tensor says."""
        flat = [expert for row in ids for expert in row]
        tail = EXPERTS_TAIL.pack(first_token, len(flat)) + struct.pack(f"={len(flat)}i", *flat)
        value = len(ids[0]) | tensor.ne[1] << 16
        self.add(BpfKind.EXPERT_IDS, ns, subject=tensor.address, value=value, tail=tail)

    def thread_name(self, tid: int, name: str) -> None:
        self.add(BpfKind.THREAD_NAME, 0, tid=tid, tail=name.encode().ljust(THREAD_NAME_BYTES, b"\0"))

    def probe(self, name: str, n_runs: int, run_time_ns: int) -> None:
        """Add what a program cost."""
        self.add(BpfKind.PROBE, 0, subject=run_time_ns, tail=PROBE_TAIL.pack(n_runs, name.encode()))

    def end(self, ns: int, *, n_lost: int = 0, reason: EndReason = EndReason.TOLD) -> None:
        self.add(BpfKind.END, ns, subject=n_lost, value=reason)

    def content(self) -> bytes:
        return b"".join((self.header(), *self.parts))

    def write(self, path: Path) -> Path:
        path.write_bytes(self.content())
        return path


#: In `small_log`: tokens begin at this distance, operators within them.
TOKEN_NS, OPERATOR_NS = 100_000, 20_000


def small_log(n_tokens: int = 2, *, counter_names: tuple[str, ...] = ()) -> BpfLogBuilder:
    """Return tokens of `small_nodes` on two threads, with structure, ends and, where named, counters; not yet ended.

    Thread 0 works for 10 µs on each operator and thread 1 for 12 µs; counters rise by 100 for each, and by 1 between.
    """
    made = BpfLogBuilder(counter_names=counter_names)
    made.thread_name(MAIN_TID, "llama-cli")
    made.thread_name(WORKER_TID, "worker")
    for token in range(n_tokens):
        _token(made, token)
    return made


def _token(made: BpfLogBuilder, token: int) -> None:
    begin_ns = token * TOKEN_NS + 1000
    norm, scaled, *others = small_nodes()
    made.add(BpfKind.TOKEN_BEGIN, begin_ns, subject=0xC0, value=1)
    made.add(BpfKind.GRAPH_BEGIN, begin_ns + 1000, subject=0xBACC, tail=CPU_GUID)
    if token == 0:
        made.structure(begin_ns + 4998, norm)
        made.structure(begin_ns + 4999, scaled)
    for place, each in enumerate((norm, *others)):
        from_ns = begin_ns + 5000 + place * OPERATOR_NS
        if token == 0 and place:
            made.structure(from_ns - 1, each)
        _operator(made, token, place, from_ns, each)
    made.add(BpfKind.GRAPH_END, begin_ns + 70_000, subject=0xBACC)
    made.add(BpfKind.TOKEN_END, begin_ns + 75_000, subject=0xC0)


def _operator(made: BpfLogBuilder, token: int, place: int, from_ns: int, tensor: RawTensor) -> None:
    flags = BpfFlag.FUSED if place == 0 else 0
    n, before = len(made.counter_names), (token * 3 + place) * 101
    counted = ([before] * n, [before + 100] * n) if n else None
    for thread, own_ns in enumerate((10_000, 12_000)):
        made.operator(from_ns, from_ns + own_ns, tensor, thread=thread, flags=flags, counted=counted)
