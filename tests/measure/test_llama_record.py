"""From what the native side holds to records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import EngineError
from perfsuite.measure.llama_record import TickClock, evaluations, placed
from perfsuite.records.events import ExpertChoice, Phase, Span

FIRST_START = 0xFFFFFFFF
NANOSECONDS = TickClock(0, 0, 10**12, 10**12)

_TICKS = st.integers(0, 2**63)
_SPAN = st.integers(1, 2**50)


@given(_TICKS, _SPAN, st.integers(0, 2**62), _SPAN, st.lists(_TICKS, min_size=2, max_size=5))
def test_a_clock_meets_its_points_and_never_turns_back(
    first: int, n_ticks: int, first_ns: int, n_ns: int, stamps: list[int]
) -> None:
    """Both calibration points are met exactly, and later ticks are never earlier nanoseconds."""
    clock = TickClock(first, first_ns, first + n_ticks, first_ns + n_ns)
    assert clock.to_ns(first) == first_ns
    assert clock.to_ns(first + n_ticks) == first_ns + n_ns
    converted = [clock.to_ns(stamp) for stamp in sorted(stamps)]
    assert converted == sorted(converted)


@pytest.mark.parametrize("last_ticks", [5, 4])
def test_a_counter_that_stands_still_is_an_error(last_ticks: int) -> None:
    """A counter that did not advance between the points cannot be time."""
    with pytest.raises(EngineError, match=rf"did not advance \(5 to {last_ticks}\)"):
        TickClock(5, 0, last_ticks, 100).to_ns(7)


def test_events_are_grouped_by_launch() -> None:
    """A launch opens an evaluation, and an entry before it is its first start."""
    events = [(5, 0, 0), (6, 0, 1), (9, 0, 2), (20, 0, FIRST_START), (18, 1, 0), (25, 1, 1)]
    first, second = evaluations(iter(events), NANOSECONDS)
    assert (first.graph, first.launch_ns, first.first_start_ns, first.ends_ns) == (0, 5, None, (6, 9))
    assert (second.graph, second.launch_ns, second.first_start_ns, second.ends_ns) == (1, 18, 20, (25,))


def test_ends_without_a_launch_are_nobodys() -> None:
    """What precedes the first launch, as the naive recorder leaves it, belongs to no evaluation."""
    assert list(evaluations(iter([(1, 0, 1), (2, 0, 1)]), NANOSECONDS)) == []
    assert list(evaluations(iter([]), NANOSECONDS)) == []


def choice(ns: int, layer: int, n_tokens: int) -> ExpertChoice:
    """Return what a router chose for so many tokens."""
    return ExpertChoice(ns=ns, layer=layer, first_token=0, n_experts=8, ids=((1, 2),) * n_tokens)


def span(phase: Phase, start_ns: int, end_ns: int, n_tokens: int) -> Span:
    """Return a phase of one call."""
    return Span(phase=phase, repetition=0, token=0, n_tokens=n_tokens, start_ns=start_ns, end_ns=end_ns)


def test_choices_are_placed_in_their_batch() -> None:
    """Ubatches follow each other, a layer with fewer tokens has the last ones, and each call starts anew."""
    spans = [
        span(Phase.DECODE, 100, 120, 1),
        span(Phase.PREFILL, 10, 90, 10),
        span(Phase.COPY, 90, 95, 1),
        span(Phase.END_TO_END, 10, 130, 11),
    ]
    choices = [
        choice(20, 0, 4),
        choice(30, 0, 4),
        choice(40, 0, 2),
        choice(41, 1, 1),
        choice(110, 0, 1),
        choice(111, 1, 1),
    ]
    found = list(placed(choices, spans))
    assert [each.first_token for each in found] == [0, 4, 8, 9, 0, 0]
    assert [(each.ns, each.ids) for each in found] == [(each.ns, each.ids) for each in choices]


def test_a_choice_outside_of_all_calls_starts_at_nothing() -> None:
    """Without a span to lie in, the first token is the first."""
    assert [each.first_token for each in placed([choice(5, 0, 2), choice(6, 0, 1)], [])] == [0, 2]
