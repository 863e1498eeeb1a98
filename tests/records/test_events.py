"""Records of phases, graphs and evaluations."""

from __future__ import annotations

from perfsuite.records.events import EngineRecord, Phase, Span


def test_a_record_survives_its_plain_form(stored_record: EngineRecord) -> None:
    """A record that is packed and unpacked is equal to itself."""
    assert EngineRecord.from_plain(stored_record.to_plain()) == stored_record


def test_a_span_lasts_from_start_to_end() -> None:
    """A span's duration is its end minus its start, in ns."""
    span = Span(phase=Phase.DECODE, repetition=0, token=64, n_tokens=1, start_ns=100, end_ns=350)
    assert span.duration_ns == 250
