"""What replicates show beside their samples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.records.observation import NO_OBSERVATION, Observation, PhaseTimeline
from perfsuite.trace import observation as module
from perfsuite.trace.observation import EngineObserver
from perfsuite.trace.samples import traced_phases


def _seen(*records: EngineRecord) -> Observation:
    observer = EngineObserver(n_prompt=64)
    for record in records:
        observer.add(record)
    return observer.observation()


def _timeline(seen: Observation, phase: str) -> PhaseTimeline:
    (found,) = (each for each in seen.timelines if each.phase == phase)
    return found


def _slower(record: EngineRecord, extra_ns: int) -> EngineRecord:
    """A replicate whose phases end later; its operators are what they are."""
    spans = [replace(span, end_ns=span.end_ns + extra_ns) for span in record.spans if span.phase is Phase.PREFILL]
    others = [span for span in record.spans if span.phase is not Phase.PREFILL]
    return replace(record, spans=(*spans, *others))


def test_without_replicates_nothing_is_seen() -> None:
    """A run that was broken off at once shows nothing."""
    assert _seen() == NO_OBSERVATION


def test_operators_are_shown_in_the_order_of_time(stored_record: EngineRecord) -> None:
    """Each begins where the one before it ends, within its phase, under its role, operator and layer."""
    prefill = _timeline(_seen(stored_record), "prefill")
    assert prefill.n_tokens == 64
    assert [(each.role, each.op, each.layer) for each in prefill.operators[:3]] == [
        ("embd", "GET_ROWS", None),
        ("attn_norm", "RMS_NORM+MUL", 0),
        ("Qcur", "MUL_MAT", 0),
    ]
    ends = [each.start_ns + each.duration_ns for each in prefill.operators]
    assert ends[:-1] == [each.start_ns for each in prefill.operators[1:]]
    assert 0 <= prefill.operators[0].start_ns < ends[-1] <= prefill.duration_ns


def test_the_time_of_operators_is_that_of_the_samples(stored_record: EngineRecord) -> None:
    """The timeline and the graph count each role as the cases do."""
    seen = _seen(stored_record)
    (prefill,) = traced_phases(stored_record, Phase.PREFILL)
    nodes = {node.role: node.time_ns for node in seen.graphs[0].nodes}
    assert nodes == prefill.role_ns
    assert sum(nodes.values()) == sum(each.duration_ns for each in _timeline(seen, "prefill").operators)


def test_the_middle_step_of_a_generation_is_shown(stored_record: EngineRecord) -> None:
    """Of 24 steps it is the twelfth."""
    steps = [span for span in stored_record.spans if span.phase is Phase.DECODE]
    assert _timeline(_seen(stored_record), "decode").duration_ns == steps[11].duration_ns


def test_the_replicate_of_the_median_time_is_shown(stored_record: EngineRecord) -> None:
    """Of five it is the third by time, of four the second, whatever their order."""
    delays_ns = (40, 0, 30, 10, 20)
    records = [_slower(stored_record, extra_ns) for extra_ns in delays_ns]
    bare_ns = _timeline(_seen(stored_record), "prefill").duration_ns
    assert _timeline(_seen(*records), "prefill").duration_ns == bare_ns + 20
    assert _timeline(_seen(*records[:4]), "prefill").duration_ns == bare_ns + 10


def test_the_repetition_of_the_median_time_is_shown(stored_record: EngineRecord) -> None:
    """Of several prefills of the scenario's length; others, as of prompts, are shown only where there is none."""
    spans = [Span(phase=Phase.PREFILL, repetition=n, token=0, n_tokens=64, start_ns=0, end_ns=n + 1) for n in range(3)]
    longer = replace(spans[0], n_tokens=128, end_ns=99)
    assert _timeline(_seen(replace(stored_record, spans=(*spans, longer))), "prefill").duration_ns == 2
    assert _timeline(_seen(replace(stored_record, spans=(longer,))), "prefill").duration_ns == 99


def test_a_record_without_operators_has_tokens_alone(stored_record: EngineRecord) -> None:
    """What no recorder has seen is not drawn."""
    seen = _seen(replace(stored_record, graphs=(), events=b""))
    assert (seen.timelines, seen.graphs) == ((), ())
    assert len(seen.tokens) == 24


def test_the_shortest_of_too_many_operators_are_left_out(
    stored_record: EngineRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timeline keeps the longest in their order; the graph counts all."""
    whole = _seen(stored_record)
    monkeypatch.setattr(module, "MAX_OPERATORS", 10)
    seen = _seen(stored_record)
    kept = _timeline(seen, "prefill").operators
    all_of_them = _timeline(whole, "prefill").operators
    assert len(kept) == 10
    assert sorted(each.duration_ns for each in kept) == sorted(each.duration_ns for each in all_of_them)[-10:]
    assert [each.start_ns for each in kept] == sorted(each.start_ns for each in kept)
    assert seen.graphs == whole.graphs


def test_no_record_is_kept(stored_record: EngineRecord) -> None:
    """What stays of many replicates is their numbers; names are kept once."""
    observer = EngineObserver(n_prompt=64)
    for _ in range(5):
        observer.add(stored_record)
    kept = [each for found in observer._shown.values() for each in found]
    assert (len(kept), len({id(each.names) for each in kept})) == (10, 1)
    assert not any(isinstance(value, EngineRecord) for value in vars(observer).values())
