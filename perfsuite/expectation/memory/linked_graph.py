"""The analytical graph as ggml's allocator needs it, and where that puts each tensor.

The analytical graph lists operators in the engine's order, with shapes. Here every operator is given the streams it
reads and which it writes, by which it is known how long each must be kept: ``x`` is the residual, ``norm`` what a norm
made of it, ``q``, ``k`` and ``v`` the heads, ``attn`` what attention makes of them, ``ffn`` the feed-forward. A name
behind ``~`` is a part of a tensor with gaps between its rows, whose memory nobody takes over. An input stands where the
engine first meets it when it walks the graph, for in that order inputs are laid out.

Leaves come first, in their order. A node takes over the memory of a source that nothing else will read, where its
operator may work in place and the two are laid out alike; otherwise it gets the smallest hole that is large enough, or
room behind everything. What nothing reads any more becomes a hole; outputs stay, and so does a leaf that nothing reads.

*Source*: ``src/llama-graph.cpp`` and ``src/models/<gguf_architecture>.cpp``, ``ggml_visit_parents_graph`` in
``ggml/src/ggml.c`` and ``ggml/src/ggml-alloc.c`` of llama.cpp, as shipped with llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import prod

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.graph import Batch
from perfsuite.expectation.graphs.operator import Operator, TensorShape
from perfsuite.expectation.graphs.place import Place, cache_of, window_of
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.op_rules import rule_of
from perfsuite.workload.architecture import Architecture

#: Marks a read of a part of a tensor whose rows have gaps between them.
PART = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What an operator reads and what it writes; None where its output lies outside the compute buffer."""

    reads: tuple[str, ...]
    writes: str | None


#: Streams that are read and the one that is written, with the beginnings of the roles of whom they are; the longest
#: beginning that fits counts.
_FLOWS: dict[str, tuple[tuple[str, ...], str]] = {
    role: (tuple(reads.split()), writes)
    for reads, writes, roles in (
        ("tokens", "x", "embd"),
        ("x", "x", "inp_scaled"),
        ("x", "norm", "norm attn_norm ffn_norm result_norm"),
        ("norm", "norm", "norm_w"),
        ("norm", "qkv", "wqkv"),
        ("qkv", "qkv", "wqkv_b"),
        ("~q", "q_nope", "q_nope_absorbed"),
        ("~q positions", "q_pe", "q_pe"),
        ("norm", "kv", "kv_cmpr_pe kv_pe_compresseed"),
        ("~kv", "kv_latent", "kv_cmpr kv_compressed"),
        ("~kv positions", "k_pe", "k_pe"),
        ("k_pe", "k_pe", "k_pe_repeat"),
        ("kv_latent", "kv_heads", "kv"),
        ("~kv_heads", "v", "Vcur_cont v_states"),
        ("", "v_copy", "v_cont"),
        ("q", "scores", "kq"),
        ("scores", "scores", "kq_scaled kq_tanh"),
        ("scores mask", "scores", "kq_soft_max"),
        ("scores v_copy", "attn", "kqv"),
        ("attn", "attn", "kqv_mla kqv_out fattn_mla attn_out attn_post_norm"),
        ("q k_copy v_copy mask", "attn", "flash_attn_ext"),
        ("attn output_rows", "attn", "attn_out_rows"),
        ("x output_rows", "x", "residual_rows"),
        ("attn x", "x", "ffn_inp sa_out"),
        ("norm", "gate", "ffn_gate"),
        ("norm", "up", "ffn_up"),
        ("up", "up", "ffn_up_b"),
        ("gate up", "ffn", "ffn_swiglu ffn_geglu"),
        ("up", "ffn", "ffn_gelu ffn_relu"),
        ("ffn", "ffn", "ffn_sqr ffn_down ffn_out ffn_post_norm"),
        ("norm", "router", "ffn_moe_logits"),
        ("router", "router", "ffn_moe_probs"),
        ("router", "chosen", "ffn_moe_argsort"),
        ("router chosen", "gates", "ffn_moe_weights"),
        ("gates", "gate_sum", "ffn_moe_weights_sum"),
        ("gate_sum", "gate_sum", "ffn_moe_weights_sum_clamped"),
        ("gates gate_sum", "gates", "ffn_moe_weights_norm"),
        ("gates", "gates", "ffn_moe_weights_scaled"),
        ("norm chosen", "gate", "ffn_moe_gate"),
        ("norm chosen", "up", "ffn_moe_up"),
        ("gate up", "routed", "ffn_moe_swiglu"),
        ("routed chosen", "experts", "ffn_moe_down"),
        ("experts gates", "experts", "ffn_moe_weighted"),
        ("~experts ~experts", "moe", "ffn_moe_weighted_add ffn_moe_out"),
        ("ffn", "shared", "ffn_shexp"),
        ("norm", "shared_gate", "ffn_shexp_gate_inp"),
        ("shared_gate", "shared_silu", "ffn_shexp_gate_inp_silu"),
        ("shared_silu shared_gate", "shared_gate", "ffn_shexp_gate"),
        ("shared shared_gate", "shared", "ffn_shexp_out"),
        ("norm", "logits", "result_output"),
    )
    for role in roles.split()
}

#: Streams that are read only where something wrote them.
_OPTIONAL = frozenset({"k_copy", "v_copy", "gate"})

#: The streams of heads by the beginnings of the roles that work on them.
_HEADS = {"Qcur": "q", "q_states": "q", "Kcur": "k", "k_states": "k", "Vcur": "v", "q_rms_norm": "q"}


def flow_of(operator: Operator, live: Collection[str], architecture: Architecture) -> Flow:
    """Return what an operator reads of the streams that are `live` in its layer, and what it writes.

    Raises ArchitectureError: the operator is none of those whose sources are known, such as that of an adapter.
    """
    special = _of_heads(operator, live) or _of_sums(operator, live, architecture)
    if special is not None:
        return special
    reads, writes = _FLOWS[_longest(operator.role, _FLOWS)]
    return Flow(reads=tuple(name for name in reads if name not in _OPTIONAL or name in live), writes=writes)


def _of_heads(operator: Operator, live: Collection[str]) -> Flow | None:
    """Follow queries, keys and values from their projection into the cache."""
    role = operator.role
    if operator.op == "SET_ROWS":
        letter = role[-1]
        heads = letter if letter in live else f"{PART}qkv"
        return Flow(reads=(heads, f"{letter}_rows"), writes=None)
    if operator.op == "CPY":  # for flash attention; where both lie in one cache, the values are copied second
        return Flow(reads=(), writes="v_copy" if role.startswith("cache_v") or "k_copy" in live else "k_copy")
    if operator.op == "CONCAT":
        parts = ("q_nope", "q_pe") if role.startswith("Q") else (_key_part(live), "k_pe")
        return Flow(reads=parts, writes="q" if role.startswith("Q") else "k")
    stream = "q" if role == "q" else next((name for start, name in _HEADS.items() if role.startswith(start)), None)
    if stream is None or (role in _FLOWS and "kv_heads" in live):
        return None
    fresh = f"{PART}qkv" if "qkv" in live else "norm"
    extra = {"ROPE": ("positions",), "FWHT": (f"rotation_{'v' if stream == 'v' else 'k'}",)}.get(operator.op, ())
    return Flow(reads=(stream if stream in live else fresh, *extra), writes=stream)


def _key_part(live: Collection[str]) -> str:
    return f"{PART}kv_heads" if "kv_heads" in live else "kv_latent"


def _of_sums(operator: Operator, live: Collection[str], architecture: Architecture) -> Flow | None:
    """Follow sums, which share their names with what they are made of, and a rotation behind attention."""
    role, op = operator.role, operator.op
    if role.startswith("kqv_out") and op == "FWHT":
        return Flow(reads=("attn", "rotation_v"), writes="attn")
    if role.startswith("result_output") and op != "MUL_MAT":
        return Flow(reads=("logits",), writes="logits")
    if op != "ADD":
        return None
    if operator.cost.parameter_bytes:  # a bias
        return _bias(role)
    if role.startswith("attn_out"):
        return Flow(reads=("attn", "x"), writes="x")
    if role.startswith("ffn_out"):
        return Flow(reads=("moe", "shared") if "moe" in live else ("ffn", "x"), writes="ffn")
    if role.startswith("ffn_moe"):
        return Flow(reads=("moe" if "moe" in live else "~experts", "~experts"), writes="moe")
    if role == "l_out":
        return Flow(reads=_last_sum(architecture), writes="x")
    return None


def _last_sum(architecture: Architecture) -> tuple[str, str]:
    """Return the operands of the sum that ends a layer, the one whose memory it takes over first in front."""
    if architecture.gguf_architecture == "phi3":
        return "x", "ffn"
    return ("ffn", "attn") if architecture.parallel_residual else ("ffn", "x")


def _bias(role: str) -> Flow | None:
    for start, stream in (("attn_norm", "norm"), ("ffn_norm", "norm"), ("result_norm", "norm"), ("attn_out", "attn")):
        if role.startswith(start):
            return Flow(reads=(stream,), writes=stream)
    return None


def _longest(role: str, starts: Collection[str]) -> str:
    fitting = [start for start in starts if role.startswith(start)]
    if not fitting or "_lora_" in role:
        raise ArchitectureError(f"what the operator {role!r} reads is not known, so its memory cannot be predicted")
    return max(fitting, key=len)


#: Inputs that each cache has for itself, where layers with a sliding window have one of their own.
_OF_CACHE = ("mask", "k_rows", "v_rows", "rotation_")

_I32_BYTES, _I64_BYTES, _F32_BYTES = 4, 8, 4


def linked_graph(workload: LlamaWorkload, batch: Batch) -> tuple[GraphTensor, ...]:
    """Return the graph of a batch with what each tensor is made of."""
    builder = _Builder(workload, batch)
    for operator in workload.operators(batch):
        builder.add(operator)
    return builder.tensors()


class _Builder:
    """Writes the tensors of a graph in order, the inputs where they are first read."""

    def __init__(self, workload: LlamaWorkload, batch: Batch) -> None:
        self._workload, self._batch = workload, batch
        self._architecture = workload.weights.architecture
        self._tensors: list[GraphTensor] = []
        #: Shapes of the operators' outputs; another view of one is not worked on in place.
        self._shapes: dict[int, TensorShape] = {}
        self._live: dict[str, int] = {}
        self._inputs: dict[str, int] = {}
        self._layer: int | None = None
        self._input("tokens", _I32_BYTES * batch.n_tokens)
        # Embeddings may be given instead of tokens; their tensor is made in any case, and nothing reads it.
        self._input("embeddings", _F32_BYTES * batch.n_tokens * self._architecture.n_embd)

    def add(self, operator: Operator) -> None:
        """Add an operator's output."""
        if operator.layer != self._layer and operator.layer is not None:
            self._layer = operator.layer
            self._live = {"x": self._live["x"]}
        flow = flow_of(operator, self._live, self._architecture)
        sources = tuple(self._source(name, operator) for name in flow.reads)
        self._tensors.append(
            GraphTensor(
                n_bytes=None if flow.writes is None else operator.output.n_bytes,
                sources=sources,
                in_place_of=self._lenders(operator, flow, sources),
                is_output=operator.role == "result_norm",
            )
        )
        self._shapes[len(self._tensors) - 1] = operator.output
        if flow.writes is not None:
            self._live[flow.writes] = len(self._tensors) - 1

    def tensors(self) -> tuple[GraphTensor, ...]:
        """Return the graph, whose last tensor is the logits."""
        return (*self._tensors[:-1], replace(self._tensors[-1], is_output=True))

    def _lenders(self, operator: Operator, flow: Flow, sources: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sources that lend their memory if nothing else reads them: none in another view than their own."""
        if not rule_of(operator.op).in_place:
            return ()
        whole = (at for name, at in zip(flow.reads, sources, strict=True) if not name.startswith(PART))
        return tuple(at for at in whole if self._shapes.get(at) == operator.output)

    def _source(self, name: str, operator: Operator) -> int:
        name = name.removeprefix(PART)
        if name in self._live:
            return self._live[name]
        if name == "positions":
            self._rotation_before_positions()
        return self._input(name, self._input_bytes(name, operator))

    def _rotation_before_positions(self) -> None:
        """Write the rotation of queries first: it is the first operand of the product that takes what RoPE turned."""
        size = cache_of(self._place()).rotation_k
        if size is not None:
            self._input("rotation_k", _F32_BYTES * size * size)

    def _input(self, name: str, n_bytes: int) -> int:
        key = f"{name}@{self._window()}" if name.startswith(_OF_CACHE) else name
        if key not in self._inputs:
            self._inputs[key] = len(self._tensors)
            self._tensors.append(GraphTensor(n_bytes=n_bytes, is_leaf=True))
        return self._inputs[key]

    def _window(self) -> int | None:
        return window_of(self._place()) if self._layer is not None else None

    def _place(self) -> Place:
        return replace(self._workload.place(self._batch), layer=self._layer)

    def _input_bytes(self, name: str, operator: Operator) -> int:
        if name == "mask":
            return operator.sources[-1].n_bytes
        if name in ("k_rows", "v_rows"):
            return _I64_BYTES * prod(operator.sources[1].ne)
        if name.startswith("rotation_"):
            return operator.sources[0].n_bytes
        return _I32_BYTES * (self._batch.n_tokens if name == "positions" else self._batch.n_outputs)


#: Every tensor begins at a multiple of this many bytes. *Source*: ``TENSOR_ALIGNMENT`` in ``ggml/src/ggml-impl.h``.
ALIGNMENT_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphTensor:
    """A tensor of a graph, which the graph's other tensors name by its place in the graph."""

    #: None where it lies elsewhere, as does a row that is written into the KV cache.
    n_bytes: int | None
    #: What its operator reads, once for each time; empty for a leaf.
    sources: tuple[int, ...] = ()
    #: Sources whose memory it may take over, in the order in which the allocator tries them.
    in_place_of: tuple[int, ...] = ()
    is_leaf: bool = False
    is_output: bool = False


def place_tensors(graph: Sequence[GraphTensor]) -> tuple[int | None, ...]:
    """Return the offset in bytes of each tensor in the compute buffer, None for what lies elsewhere."""
    readers = _readers(graph)
    offsets: list[int | None] = [None] * len(graph)
    owned = [False] * len(graph)
    holes = _Holes()
    for at, tensor in enumerate(graph):
        if tensor.is_leaf and tensor.n_bytes is not None:
            offsets[at], owned[at] = holes.take(_aligned(tensor.n_bytes)), True
    for at, tensor in enumerate(graph):
        if tensor.is_leaf:
            continue
        if tensor.n_bytes is not None:
            lender = _lender(graph, tensor, readers, owned)
            if lender is None:
                offsets[at] = holes.take(_aligned(tensor.n_bytes))
            else:
                offsets[at], owned[lender] = offsets[lender], False
            owned[at] = True
        for source in tensor.sources:
            readers[source] -= 1
            if readers[source] == 0 and owned[source] and not graph[source].is_output:
                holes.give_back(offsets[source], _aligned(graph[source].n_bytes))
                owned[source] = False
    return tuple(offsets)


def reserved_bytes(graph: Sequence[GraphTensor], offsets: Sequence[int | None]) -> int:
    """Return the size of the buffer that holds every tensor at its offset."""
    ends = (
        at + _aligned(tensor.n_bytes)
        for tensor, at in zip(graph, offsets, strict=True)
        if at is not None and tensor.n_bytes is not None
    )
    return max(ends, default=0)


def _readers(graph: Sequence[GraphTensor]) -> list[int]:
    readers = [0] * len(graph)
    for tensor in graph:
        for source in tensor.sources:
            readers[source] += 1
    return readers


def _lender(graph: Sequence[GraphTensor], tensor: GraphTensor, readers: list[int], owned: list[bool]) -> int | None:
    fitting = (
        source
        for source in tensor.in_place_of
        if owned[source] and readers[source] == 1 and not graph[source].is_output
    )
    return next(fitting, None)


def _aligned(n_bytes: int | None) -> int:
    return -(-(n_bytes or 0) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


class _Holes:
    """The free ranges of a buffer in order, behind which all is free."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        self._end = 0

    def take(self, size: int) -> int:
        """Return the offset of the smallest hole that fits, of equal ones the last, or of the room behind all."""
        fitting = [(length, -at, index) for index, (at, length) in enumerate(self._ranges) if length >= size]
        if not fitting:
            self._end += size
            return self._end - size
        length, negative_at, index = min(fitting)
        left = (-negative_at + size, length - size)
        self._ranges[index : index + 1] = [left] if left[1] else []
        return -negative_at

    def give_back(self, at: int | None, size: int) -> None:
        """Free a range, joining it with the holes at its sides and with the room behind all."""
        if at is None or size == 0:
            return
        joined: list[tuple[int, int]] = []
        for start, length in sorted([*self._ranges, (at, size)]):
            if joined and sum(joined[-1]) == start:
                joined[-1] = (joined[-1][0], joined[-1][1] + length)
            else:
                joined.append((start, length))
        if joined and sum(joined[-1]) == self._end:
            self._end = joined.pop()[0]
        self._ranges = joined
