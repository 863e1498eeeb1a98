"""The native driver on the real engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Phase

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


@pytest.mark.parametrize("n_threads", [1, 2])
def test_each_thread_has_each_operator_with_its_own_end(
    small_plan: LlamaPlan, recorded: Recorded, n_threads: int
) -> None:
    """The preload recorder sees each timed node once an evaluation on each thread, fused pairs too, in order."""
    record = recorded(replace(small_plan, recorder="preload", n_threads=n_threads))
    timed = [[place for place, node in enumerate(graph) if node.timed] for graph in record.graphs]
    assert any(node.fused for graph in record.graphs for node in graph)
    assert record.n_dropped == 0
    for thread in range(n_threads):
        own = [each for each in record.thread_starts if each.thread == thread]
        expected = [(each.graph, node) for each in record.evaluations for node in timed[each.graph]]
        assert [(each.graph, each.node) for each in own] == expected
        ends = [each.end_ns for each in own]
        assert all(end is not None and each.start_ns <= end for each, end in zip(own, ends, strict=True))
        assert all(end is not None and end <= then.start_ns for end, then in zip(ends, own[1:], strict=False))


def test_own_times_of_threads_lie_within_the_phases(small_plan: LlamaPlan, recorded: Recorded) -> None:
    """On one thread the operators' own times of a call sum up to no more than its phase."""
    record = recorded(replace(small_plan, recorder="preload"))
    for span in record.spans:
        if span.phase in (Phase.PREFILL, Phase.DECODE):
            own_ns = sum(
                each.end_ns - each.start_ns
                for each in record.thread_starts
                if each.end_ns is not None and span.start_ns <= each.start_ns <= span.end_ns
            )
            assert 0 < own_ns <= span.duration_ns


def test_tensors_of_one_memory_share_their_root(small_plan: LlamaPlan, recorded: Recorded) -> None:
    """A view has the root of what it is a view of, and a source that of the node that computed it."""
    for graph in recorded(small_plan).graphs:
        roots = {node.tensor.name: node.tensor.root for node in graph if node.timed or node.fused}
        views = [node for node in graph if node.op in ("VIEW", "RESHAPE", "PERMUTE")]
        assert views
        assert all(node.tensor.root == node.sources[0].root for node in views)
        sources = {each.name: each.root for node in graph for each in node.sources}
        assert all(sources[name] == root for name, root in roots.items() if name in sources)


def test_the_experts_of_each_token_and_layer_are_read(routed_plan: LlamaPlan, recorded: Recorded) -> None:
    """Each layer's router is read in each call; the last layer computes the last token of a prompt alone."""
    record = recorded(replace(routed_plan, recorder="experts"))
    steps = [(0, 0, 1), (1, 0, 1)] * routed_plan.n_gen
    seen = [(each.layer, each.first_token, len(each.ids)) for each in record.experts]
    assert seen == [(0, 0, routed_plan.n_prompt), (1, routed_plan.n_prompt - 1, 1), *steps]
    assert {each.n_experts for each in record.experts} == {60}
    for choice in record.experts:
        assert all(len(set(row)) == 4 and all(0 <= expert < 60 for expert in row) for row in choice.ids)
        assert sum(span.start_ns < choice.ns < span.end_ns for span in record.spans) == 2
    assert len(set(record.experts[0].ids)) > 1


def test_experts_do_not_depend_on_how_a_batch_is_cut(routed_plan: LlamaPlan, recorded: Recorded) -> None:
    """In ubatches of 5 the tokens of a prompt choose the experts that they choose together."""
    together = recorded(replace(routed_plan, recorder="experts")).experts
    cut = recorded(replace(routed_plan, recorder="experts", n_ubatch=5)).experts
    assert [each.first_token for each in cut[:5]] == [0, 5, 10, 15, 15]
    assert tuple(row for each in cut[:4] for row in each.ids) == together[0].ids
    assert [each.ids for each in cut[4:]] == [each.ids for each in together[1:]]


def test_reading_experts_changes_no_operator(routed_plan: LlamaPlan, recorded: Recorded) -> None:
    """The pieces of a graph have, one behind the other, the operators of the whole, and each has its end."""
    whole, pieces = (recorded(replace(routed_plan, recorder=name)) for name in ("callback", "experts"))
    names = [[name for graph in graph_names(record) for name in graph] for record in (whole, pieces)]
    assert names[0] == names[1]
    assert len(pieces.evaluations) == 3 * len(whole.evaluations)
    assert n_ends(pieces) == [sum(node.timed for node in pieces.graphs[each.graph]) for each in pieces.evaluations]
    assert sum(n_ends(pieces)) == sum(n_ends(whole))


def test_without_a_device_a_graph_is_one_split(small_plan: LlamaPlan, recorded: Recorded) -> None:
    """The processor's backend is given the whole graph once a call, and refuses nothing."""
    record, usual = (recorded(replace(small_plan, recorder=name)) for name in ("splits", "callback"))
    assert [each.backend for each in record.splits] == ["CPU"] * (1 + small_plan.n_gen)
    assert record.evaluations == ()
    names = [[node.tensor.name for node in record.graphs[each.graph]] for each in record.splits]
    assert names == graph_names(usual)
    assert all(node.refused_by == () for graph in record.graphs for node in graph)
    for each in record.splits:
        spans = [span for span in record.spans if span.start_ns <= each.launch_ns <= each.return_ns <= span.end_ns]
        assert len(spans) == 2


def test_an_unknown_recorder_is_refused(small_plan: LlamaPlan) -> None:
    """The message lists what there is."""
    with pytest.raises(MeasurementError, match=r"recorder 'tape' is not known; known are .*cb_eval, groups"):
        run_worker(replace(small_plan, recorder="tape"))
