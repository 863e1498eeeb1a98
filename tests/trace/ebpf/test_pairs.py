"""Norms and their weights in logs of engines that compute them one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.records.bpf_log_file import BpfKind, read_bpf_log
from perfsuite.records.engine_trace import EngineTrace, EventFlag, EventKind
from perfsuite.testing.bpf_logs import CPU_GUID, BpfLogBuilder, RawTensor, small_nodes, tensor_layout
from perfsuite.testing.engine_traces import EPOCH_NS
from perfsuite.trace.ebpf.ebpf_trace import ebpf_trace

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
        (NORM, replace(SCALED, sources=(NORM, replace(SCALED.sources[1], type="q8_0")))),
        (NORM, replace(SCALED, ne=(64, 2, 1, 1))),
        (NORM, replace(SCALED, op="ADD")),
        (NORM, replace(SCALED, sources=SCALED.sources[1:])),
        (replace(NORM, view_src=0x77), SCALED),
        (NORM, SCALED, replace(OUT, sources=(NORM, SCALED))),
    ],
    ids=["apart", "narrow", "quantised", "shape", "sum", "other", "view", "used-twice"],
)
def test_what_no_backend_computes_as_one_stays_two(tmp_path: Path, tensors: tuple[RawTensor, ...]) -> None:
    (graph,) = traced(tmp_path, tensors).graphs
    assert [node.fused_op for node in graph] == [None] * len(tensors)
