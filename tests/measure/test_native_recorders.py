"""The native driver on the real engine."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from perfsuite.measure.launch import run_worker
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.engine_columns import evaluations_of, experts_of, splits_of, thread_operators
from perfsuite.records.engine_trace import NOTHING
from perfsuite.records.events import EngineRecord, Phase

from .conftest import led, spans_of


def _anonymous_bytes(pid: int, folder: Path) -> int:
    """Sum up what a process has of its own in the read-only mappings of a folder's files."""
    text = Path(f"/proc/{pid}/smaps").read_text("utf-8")
    mappings = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", text, flags=re.MULTILINE)
    heads = ((mapping, mapping.partition("\n")[0]) for mapping in mappings)
    own = [mapping for mapping, head in heads if str(folder) in head and head.split()[1] in ("r--p", "r-xp")]
    return sum(
        1024 * int(size) for mapping in own for size in re.findall(r"^Anonymous: +(\d+) kB", mapping, re.MULTILINE)
    )


def test_a_process_that_draws_its_layout_gets_pages_of_its_own(small_plan: LlamaPlan) -> None:
    """All of the engine's code and constants are copied, nothing of it can be written to, and it computes the same."""
    folder = Path(small_plan.library_dir).resolve()
    found = {}
    for layout_seed in (0, 7):
        plan = replace(small_plan, layout_seed=layout_seed)
        with led(plan) as worker:
            found[layout_seed] = _anonymous_bytes(worker.pid, folder)
            maps = Path(f"/proc/{worker.pid}/maps").read_text("utf-8").splitlines()
            assert not any(" rwx" in line for line in maps if str(folder) in line)
            worker.run(plan)
            assert EngineRecord.from_plain(worker.payload()["engine"]).spans
    assert found[7] > found[0] + 2**20


#: Runs a plan and returns its record; the same plan is run once.
Recorded = Callable[[LlamaPlan], EngineRecord]


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    known: dict[LlamaPlan, EngineRecord] = {}

    def record(plan: LlamaPlan) -> EngineRecord:
        if plan not in known:
            known[plan] = EngineRecord.from_plain(run_worker(plan)["engine"])
        return known[plan]

    return record


def graph_names(record: EngineRecord) -> list[list[str]]:
    return [[node.tensor.name for node in record.graphs[graph]] for graph in evaluations_of(record).graph]


def n_ends(record: EngineRecord) -> list[int]:
    found: list[int] = evaluations_of(record).n_ends.tolist()
    return found


def test_node_by_node_every_node_of_the_graph_ends(small_plan: LlamaPlan, recorded: Recorded) -> None:
    """The recorder of groups ends at each node of each evaluation, views among them, in the order of time."""
    record = recorded(replace(small_plan, recorder="groups"))
    assert n_ends(record) == [len(names) for names in graph_names(record)]
    found = evaluations_of(record)
    assert [span.phase for span in record.spans].count(Phase.DECODE) == len(found) - 1 == small_plan.n_gen
    assert record.n_dropped == 0
    for number, launch_ns in enumerate(found.launch_ns):
        times = (launch_ns, *found.ends_ns[found.ends(number)])
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
    record = recorded(replace(small_plan, n_gen=2, prompt_lengths=(24, 8)))
    prefills = spans_of(record, Phase.PREFILL)
    assert [(span.repetition, span.n_tokens) for span in prefills] == [(0, 24), (1, 8)]
    steps = spans_of(record, Phase.DECODE)
    assert [(span.repetition, span.token) for span in steps] == [(0, 24), (0, 25), (1, 8), (1, 9)]
    whole = spans_of(record, Phase.END_TO_END)
    assert [span.repetition for span in whole] == [0, 1]
    assert all(one.start_ns <= two.start_ns < one.end_ns for one, two in zip(whole, prefills, strict=True))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_each_thread_has_each_operator_with_its_own_end(
    small_plan: LlamaPlan, recorded: Recorded, n_threads: int
) -> None:
    record = recorded(replace(small_plan, recorder="preload", n_threads=n_threads))
    timed = [[place for place, node in enumerate(graph) if node.timed] for graph in record.graphs]
    assert any(node.fused for graph in record.graphs for node in graph)
    assert record.n_dropped == 0
    operators = thread_operators(record)
    expected = [(graph, node) for graph in evaluations_of(record).graph.tolist() for node in timed[graph]]
    for thread in range(n_threads):
        own = operators[operators["thread"] == thread]
        assert own[["graph", "node"]].tolist() == expected
        assert (own["end_ns"] != NOTHING).all()
        assert (own["start_ns"] <= own["end_ns"]).all()
        assert (own["end_ns"][:-1] <= own["start_ns"][1:]).all()
        for span in record.spans:
            if span.phase in (Phase.PREFILL, Phase.DECODE):
                within = own[(own["start_ns"] >= span.start_ns) & (own["start_ns"] <= span.end_ns)]
                assert 0 < (within["end_ns"] - within["start_ns"]).sum() <= span.duration_ns


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
    experts, n_experts = experts_of(record)
    assert n_experts == 60
    choices = np.split(experts, np.flatnonzero(np.diff(experts["ns"])) + 1)
    seen = [(int(each["layer"][0]), each["token"][::4].tolist()) for each in choices]
    prompt = list(range(routed_plan.n_prompt))
    assert seen == [(0, prompt), (1, prompt[-1:]), *([(0, [0]), (1, [0])] * routed_plan.n_gen)]
    rows = experts["expert"].reshape(-1, 4)
    assert experts["slot"].reshape(rows.shape).tolist() == [[0, 1, 2, 3]] * len(rows)
    assert all(len(set(row)) == 4 and all(0 <= expert < 60 for expert in row) for row in rows.tolist())
    for choice in choices:
        assert sum(span.start_ns < choice["ns"][0] < span.end_ns for span in record.spans) == 2
    assert len(np.unique(rows[: len(prompt)], axis=0)) > 1


def test_experts_do_not_depend_on_how_a_batch_is_cut(routed_plan: LlamaPlan, recorded: Recorded) -> None:
    """In ubatches of 5 the tokens of a prompt choose the experts that they choose together.

    The pieces of a graph have, one behind the other, the operators of the whole, and each has its end.
    """
    pieces = recorded(replace(routed_plan, recorder="experts"))
    (together, _), (cut, _) = map(experts_of, (pieces, recorded(replace(routed_plan, recorder="experts", n_ubatch=5))))
    fields = ["layer", "token", "slot", "expert"]
    assert cut[fields].tolist() == together[fields].tolist()
    ends = np.append(np.flatnonzero(np.diff(cut["ns"])), cut.size - 1)
    assert cut["token"][ends[:5]].tolist() == [4, 9, 14, routed_plan.n_prompt - 1, routed_plan.n_prompt - 1]
    whole = recorded(replace(routed_plan, recorder="callback"))
    names = [[name for graph in graph_names(record) for name in graph] for record in (whole, pieces)]
    assert names[0] == names[1]
    assert len(n_ends(pieces)) == 3 * len(n_ends(whole))
    n_timed = [sum(node.timed for node in graph) for graph in pieces.graphs]
    assert n_ends(pieces) == [n_timed[graph] for graph in evaluations_of(pieces).graph]
    assert sum(n_ends(pieces)) == sum(n_ends(whole))


def test_without_a_device_a_graph_is_one_split(small_plan: LlamaPlan, recorded: Recorded) -> None:
    """The processor's backend is given the whole graph once a call, and refuses nothing."""
    record, usual = (recorded(replace(small_plan, recorder=name)) for name in ("splits", "callback"))
    splits = splits_of(record)
    assert [record.backends[each] for each in splits["backend"]] == ["CPU"] * (1 + small_plan.n_gen)
    assert n_ends(record) == []
    names = [[node.tensor.name for node in record.graphs[graph]] for graph in splits["graph"]]
    assert names == graph_names(usual)
    assert all(node.refused_by == () for graph in record.graphs for node in graph)
    for launch_ns, return_ns in zip(splits["launch_ns"], splits["return_ns"], strict=True):
        spans = [span for span in record.spans if span.start_ns <= launch_ns <= return_ns <= span.end_ns]
        assert len(spans) == 2
