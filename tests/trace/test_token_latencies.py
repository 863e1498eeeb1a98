"""The time of decode steps by their place in the sequence."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import median

from perfsuite.records.events import EngineRecord, Phase, Span
from perfsuite.records.observation import TokenLatency
from perfsuite.trace.token_latencies import MAX_TOKENS, step_latencies, token_latencies


def _step(token: int, duration_ns: int, repetition: int = 0, phase: Phase = Phase.DECODE) -> Span:
    return Span(phase=phase, repetition=repetition, token=token, n_tokens=1, start_ns=100, end_ns=100 + duration_ns)


def test_a_step_is_the_median_of_its_repetitions(stored_record: EngineRecord) -> None:
    """Steps at one place are reduced to one value, and other phases are none of it."""
    spans = (*(_step(4, time_ns, n) for n, time_ns in enumerate((30, 10, 20))), _step(5, 7), _step(4, 1, 0, Phase.COPY))
    assert step_latencies(replace(stored_record, spans=spans)) == {4: 20, 5: 7}


def test_the_steps_of_a_process_are_those_of_its_decode(stored_record: EngineRecord) -> None:
    """24 generated tokens behind a prompt of 64 are at the places from 64 on, and their median is the phase's."""
    found = step_latencies(stored_record)
    assert list(found) == list(range(64, 88))
    spans = [span.duration_ns for span in stored_record.spans if span.phase is Phase.DECODE]
    assert median(found.values()) == median(spans)


def test_replicates_stand_side_by_side() -> None:
    """Each place has one value a replicate, in their order; a place that one of them lacks is left out."""
    assert token_latencies([{2: 20, 1: 10}, {1: 11, 2: 21, 3: 31}]) == (
        TokenLatency(n_context=1, samples_ns=(10, 11)),
        TokenLatency(n_context=2, samples_ns=(20, 21)),
    )
    assert token_latencies([]) == ()


def test_many_places_are_thinned_out_evenly() -> None:
    """First and last are kept, and no gap is wider than another by more than one."""
    found = [each.n_context for each in token_latencies([dict.fromkeys(range(5, 5005), 1)])]
    gaps = {later - earlier for earlier, later in pairwise(found)}
    assert (len(found), found[0], found[-1]) == (MAX_TOKENS, 5, 5004)
    assert max(gaps) - min(gaps) <= 1
    assert len(token_latencies([dict.fromkeys(range(MAX_TOKENS), 1)])) == MAX_TOKENS
