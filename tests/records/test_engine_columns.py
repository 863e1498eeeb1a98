"""What the suite's own recorders keep, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import EngineError
from perfsuite.records.engine_columns import (
    CHOICE_DTYPE,
    RING_DTYPE,
    SPLIT_DTYPE,
    THREAD_DTYPE,
    Evaluations,
    evaluations_of,
    experts_of,
    splits_of,
    thread_operators,
    ticks_to_ns,
)
from perfsuite.records.engine_trace import NOTHING
from perfsuite.records.events import EngineRecord, Phase, Span, TickClock

_SPAN = st.integers(1, 2**50)


def record(**fields: Any) -> EngineRecord:
    return EngineRecord(**{"engine_version": "", "spans": (), "graphs": ((),) * 2, "n_dropped": 0, **fields})


def evaluated(*events: tuple[int, int, int]) -> Evaluations:
    return evaluations_of(record(events=np.array(list(events), RING_DTYPE).tobytes()))


def test_rows_are_as_long_as_the_native_structs() -> None:
    """The bytes of each row are those that native/src/worker/engine.cpp hands out, which asserts the same."""
    read = (RING_DTYPE, THREAD_DTYPE, CHOICE_DTYPE, SPLIT_DTYPE)
    assert tuple(dtype.itemsize for dtype in read) == (16, 32, 32, 24)


@given(st.integers(0, 2**62), _SPAN, st.integers(0, 2**61), _SPAN, st.lists(_SPAN, min_size=2, max_size=5))
def test_a_clock_meets_its_points_and_never_turns_back(
    first: int, n_ticks: int, first_ns: int, n_ns: int, after: list[int]
) -> None:
    """Both calibration points are met exactly, and later ticks are never earlier nanoseconds."""
    clock = TickClock(first_ticks=first, first_ns=first_ns, last_ticks=first + n_ticks, last_ns=first_ns + n_ns)
    points = ticks_to_ns(np.array([first, first + n_ticks]), clock)
    assert points.tolist() == [first_ns, first_ns + n_ns]
    within = sorted(first + each % (n_ticks + 1) for each in after)
    assert (np.diff(ticks_to_ns(np.array(within), clock)) >= 0).all()


def test_an_operator_begins_where_the_node_before_it_ended() -> None:
    """The first with its entry, or the launch; a node that computes nothing has an end and is no operator."""
    found = evaluated(
        *((10, 0, 0), (12, 0, 1), (15, 0, -2), (20, 0, 2)),
        *((31, 0, -1), (30, 0, 0), (32, 0, -2), (37, 0, 1), (41, 0, 2)),
    )
    assert found.starts_ns.tolist() == [10, 15, 32, 37]
    assert found.ends_ns.tolist() == [12, 20, 37, 41]
    assert found.n_ends.tolist() == [2, 2]
    assert found.first_start_ns.tolist() == [NOTHING, 31]


@pytest.mark.parametrize("last_ticks", [5, 4])
def test_a_counter_that_stands_still_is_an_error(last_ticks: int) -> None:
    clock = TickClock(first_ticks=5, first_ns=0, last_ticks=last_ticks, last_ns=100)
    with pytest.raises(EngineError, match=rf"did not advance \(5 to {last_ticks}\)"):
        ticks_to_ns(np.array([7]), clock)


def test_times_are_on_the_clock_and_what_was_not_seen_is_not() -> None:
    """Two ticks are a nanosecond, an end of 0 was not seen; a launch opens an evaluation."""
    clock = TickClock(first_ticks=100, first_ns=1000, last_ticks=300, last_ns=1100)
    threads = np.array([(120, 140, 0, 1, 1, 0), (102, 0, 0, 2, 0, 0)], THREAD_DTYPE).tobytes()
    splits = np.array([(110, 130, 1, 0)], SPLIT_DTYPE).tobytes()
    made = record(clock=clock, thread_events=threads, splits=splits, backends=("CPU",))
    assert thread_operators(made)[["thread", "node", "start_ns", "end_ns"]].tolist() == [
        (0, 2, 1001, NOTHING),
        (1, 1, 1010, 1020),
    ]
    assert splits_of(made).tolist() == [(1005, 1015, 1, 0)]
    found = evaluated((5, 0, 0), (6, 0, 1), (9, 0, 2), (20, 0, NOTHING), (18, 1, 0), (25, 1, 1), (30, 0, 0))
    assert (found.graph.tolist(), found.launch_ns.tolist()) == ([0, 1, 0], [5, 18, 30])
    assert found.first_start_ns.tolist() == [NOTHING, 20, NOTHING]
    assert [found.ends_ns[found.ends(each)].tolist() for each in range(3)] == [[6, 9], [25], []]
    assert (found.starts_ns.tolist(), found.last_ns.tolist()) == ([5, 6, 20], [9, 25, NOTHING])
    assert [list(found.within(*each)) for each in ((5, 18), (6, 19), (31, 40))] == [[0], [1], []]


@pytest.mark.parametrize("events", [[], [(1, 0, 1), (2, 0, 1)], [(1, 0, NOTHING)]])
def test_ends_without_a_launch_are_nobodys(events: list[tuple[int, int, int]]) -> None:
    """What precedes the first launch, as the naive recorder leaves it, belongs to no evaluation."""
    found = evaluated(*events)
    assert (len(found), found.ends_ns.size, found.starts_ns.size) == (0, 0, 0)
    assert len(evaluated(*events, (7, 0, 0), (8, 0, 1))) == 1


def chosen(*choices: tuple[int, int, int], spans: tuple[Span, ...] = ()) -> list[int]:
    """Return the first token of each choice of (time, layer, tokens), each token having two experts."""
    rows = [(2 * ns, 2 * place, layer, n_tokens, 2, 8) for place, (ns, layer, n_tokens) in enumerate(choices)]
    made = record(
        spans=spans,
        clock=TickClock(first_ticks=0, first_ns=0, last_ticks=2000, last_ns=1000),
        expert_choices=np.array(rows, CHOICE_DTYPE).tobytes(),
        expert_ids=np.arange(100, dtype="<i4").tobytes(),
    )
    experts, n_experts = experts_of(made)
    assert (n_experts, experts.size) == (8, sum(2 * n_tokens for *_, n_tokens in choices))
    of_choice = [experts[experts["ns"] == ns] for ns, *_ in choices]
    assert all((np.diff(each["token"]) == [0, 1] * (len(each) // 2 - 1) + [0]).all() for each in of_choice)
    assert all(each["slot"].tolist() == [0, 1] * (len(each) // 2) for each in of_choice)
    assert [each["expert"][0] for each in of_choice] == [2 * place for place in range(len(choices))]
    return [int(each["token"][0]) for each in of_choice]


def span(phase: Phase, start_ns: int, end_ns: int, n_tokens: int) -> Span:
    return Span(phase=phase, repetition=0, token=0, n_tokens=n_tokens, start_ns=start_ns, end_ns=end_ns)


def test_choices_are_placed_in_their_batch() -> None:
    """Ubatches follow each other, a layer with fewer tokens has the last; outside of all the first is 0."""
    spans = (
        span(Phase.DECODE, 100, 120, 1),
        span(Phase.PREFILL, 10, 90, 10),
        span(Phase.COPY, 90, 95, 1),
        span(Phase.END_TO_END, 10, 130, 11),
    )
    choices = ((20, 0, 4), (30, 0, 4), (40, 0, 2), (41, 1, 1), (110, 0, 1), (111, 1, 1))
    assert (chosen(*choices, spans=spans), chosen((5, 0, 2), (6, 0, 1))) == ([0, 4, 8, 9, 0, 0], [0, 2])
    experts, n_experts = experts_of(record())
    assert (experts.size, n_experts) == (0, None)
