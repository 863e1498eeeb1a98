"""Records of phases, graphs and evaluations."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.events import EngineRecord, Node, Phase, Span, Tensor, TickClock


def test_a_record_survives_its_plain_form(stored_record: EngineRecord) -> None:
    """Also arrays, backends, the clock, and which device refuses a node; spans last from start to end."""
    assert EngineRecord.from_plain(stored_record.to_plain()) == stored_record
    root = 0xB400007E12345670
    tensor = Tensor(name="t", type="f32", ne=(4, 1, 1, 1), nb=(4, 16, 16, 16), root=root)
    node = Node(tensor=tensor, op="ADD", timed=True, fused=False, sources=(tensor,), refused_by=("GPU0", "GPU1"))
    record = replace(
        stored_record,
        graphs=(*stored_record.graphs, (node,)),
        thread_events=b"1",
        expert_choices=b"2",
        expert_ids=b"3",
        splits=b"4",
        backends=("CPU", "OpenCL"),
        clock=TickClock(first_ticks=1, first_ns=2, last_ticks=3, last_ns=4),
    )
    assert EngineRecord.from_plain(record.to_plain()) == record
    span = Span(phase=Phase.DECODE, repetition=0, token=64, n_tokens=1, start_ns=100, end_ns=350)
    assert span.duration_ns == 250
