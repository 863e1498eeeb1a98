"""Records of phases, graphs and evaluations."""

from __future__ import annotations

import json
from dataclasses import replace

from perfsuite.records.events import EngineRecord, ExpertChoice, Node, Phase, Span, Split, Tensor, ThreadStart


def test_a_record_survives_its_plain_form(stored_record: EngineRecord) -> None:
    """A record that is packed and unpacked is equal to itself."""
    assert EngineRecord.from_plain(stored_record.to_plain()) == stored_record


def test_threads_experts_and_splits_survive_too(stored_record: EngineRecord) -> None:
    """What only some recorders give is packed as well, with what is not known."""
    root = 0xB400007E12345670
    tensor = Tensor(name="t", type="f32", ne=(4, 1, 1, 1), nb=(4, 16, 16, 16), root=root)
    node = Node(tensor=tensor, op="ADD", timed=True, fused=False, sources=(tensor,), refused_by=("GPU0", "GPU1"))
    record = replace(
        stored_record,
        graphs=(*stored_record.graphs, (node,)),
        thread_starts=(
            ThreadStart(graph=0, node=1, thread=2, start_ns=3, end_ns=4),
            ThreadStart(graph=0, node=1, thread=2, start_ns=3),
        ),
        experts=(
            ExpertChoice(ns=1, layer=2, first_token=3, n_experts=60, ids=((5, 4), (59, 0), (1, 2))),
            ExpertChoice(ns=2, layer=3, first_token=0, n_experts=None, ids=()),
        ),
        splits=(Split(graph=1, backend="OpenCL", launch_ns=10, return_ns=12),),
    )
    assert EngineRecord.from_plain(record.to_plain()) == record
    assert json.dumps(record.to_plain()["splits"]) == '[[1, "OpenCL", 10, 12]]'


def test_a_span_lasts_from_start_to_end() -> None:
    """A span's duration is its end minus its start, in ns."""
    span = Span(phase=Phase.DECODE, repetition=0, token=64, n_tokens=1, start_ns=100, end_ns=350)
    assert span.duration_ns == 250
