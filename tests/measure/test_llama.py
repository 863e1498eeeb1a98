"""From what the native side holds to records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import EngineError, MeasurementError
from perfsuite.measure.launch import run_worker
from perfsuite.measure.llama import TickClock, _evaluations
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Phase

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
    first, second = _evaluations(iter(events), NANOSECONDS)
    assert (first.graph, first.launch_ns, first.first_start_ns, first.ends_ns) == (0, 5, None, (6, 9))
    assert (second.graph, second.launch_ns, second.first_start_ns, second.ends_ns) == (1, 18, 20, (25,))


def test_ends_without_a_launch_are_nobodys() -> None:
    """What precedes the first launch, as the naive recorder leaves it, belongs to no evaluation."""
    assert list(_evaluations(iter([(1, 0, 1), (2, 0, 1)]), NANOSECONDS)) == []
    assert list(_evaluations(iter([]), NANOSECONDS)) == []


# ---- the real engine ---------------------------------------------------------------------------------------------

#: Runs a plan and returns its record; the same plan is run once.
Recorded = Callable[[LlamaPlan], EngineRecord]


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    """Return how to run the real engine."""
    known: dict[LlamaPlan, EngineRecord] = {}

    def record(plan: LlamaPlan) -> EngineRecord:
        if plan not in known:
            known[plan] = EngineRecord.from_plain(run_worker(plan)["engine"])
        return known[plan]

    return record


def graph_names(record: EngineRecord) -> list[list[str]]:
    """Return the names of the nodes of each evaluation's graph."""
    return [[node.tensor.name for node in record.graphs[each.graph]] for each in record.evaluations]


def n_ends(record: EngineRecord) -> list[int]:
    """Return how many ends each evaluation has."""
    return [len(each.ends_ns) for each in record.evaluations]


def test_node_by_node_every_node_of_the_graph_ends(small_plan: LlamaPlan, recorded: Recorded) -> None:
    """The recorder of groups ends at each node of each evaluation, views among them, in the order of time."""
    record = recorded(replace(small_plan, recorder="groups"))
    assert n_ends(record) == [len(names) for names in graph_names(record)]
    assert [span.phase for span in record.spans].count(Phase.DECODE) == len(record.evaluations) - 1 == small_plan.n_gen
    assert record.n_dropped == 0
    for each in record.evaluations:
        times = (each.launch_ns, *each.ends_ns)
        assert all(one <= other for one, other in pairwise(times))
        assert sum(span.start_ns <= times[0] and times[-1] <= span.end_ns for span in record.spans) == 2


def test_groups_do_not_change_the_graph(small_plan: LlamaPlan, recorded: Recorded) -> None:
    """Node by node each evaluation has the graph that the callback recorder sees, but that no node is fused away."""
    by_callback, by_node = (recorded(replace(small_plan, recorder=name)) for name in ("callback", "groups"))
    assert graph_names(by_node) == graph_names(by_callback)
    fused = [[node.fused for graph in record.graphs for node in graph].count(True) for record in (by_callback, by_node)]
    assert fused[0] > fused[1] == 0


def test_nodes_that_end_no_group_have_no_end(small_plan: LlamaPlan, recorded: Recorded) -> None:
    """A zero joins a node to the next one in its phase; nodes beyond what the plan names end a group each."""
    every = n_ends(recorded(replace(small_plan, recorder="groups")))
    joined = replace(small_plan, recorder="groups", group_ends=((0, 1, 0, 0), (1, 0)))
    record = recorded(joined)
    assert n_ends(record) == [every[0] - 3, *(each - 1 for each in every[1:])]
    assert graph_names(record) == graph_names(recorded(replace(joined, group_ends=((), ()))))


def test_a_process_runs_each_prompt(small_plan: LlamaPlan, recorded: Recorded) -> None:
    """Prompts of two lengths are two repetitions, in their order, each with its own generation."""
    record = recorded(replace(small_plan, n_gen=2, prompt_lengths=(24, 8)))
    prefills = [span for span in record.spans if span.phase is Phase.PREFILL]
    assert [(span.repetition, span.n_tokens) for span in prefills] == [(0, 24), (1, 8)]
    steps = [(span.repetition, span.token) for span in record.spans if span.phase is Phase.DECODE]
    assert steps == [(0, 24), (0, 25), (1, 8), (1, 9)]
    whole = [span for span in record.spans if span.phase is Phase.END_TO_END]
    assert [span.repetition for span in whole] == [0, 1]
    assert all(one.start_ns <= two.start_ns < one.end_ns for one, two in zip(whole, prefills, strict=True))


def test_an_unknown_recorder_is_refused(small_plan: LlamaPlan) -> None:
    """The message lists what there is."""
    with pytest.raises(MeasurementError, match=r"recorder 'tape' is not known; known are .*cb_eval, groups"):
        run_worker(replace(small_plan, recorder="tape"))
