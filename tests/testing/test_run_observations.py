"""What a made-up run saw."""

from __future__ import annotations

from pathlib import Path

from perfsuite.records.observation import read_observation, write_observation
from perfsuite.testing.run_cases import operator_id, phase_id
from perfsuite.testing.run_files import HOSTILE_NAMES, synthetic_observation, synthetic_run

RUN = synthetic_run(n_cases=60)


def test_everything_that_a_report_shows_is_there(tmp_path: Path) -> None:
    """No part is empty, and what is written is read again, with names of any kind; equal runs saw the same.

    Exactly one state of the machine is that of a replicate that was left out, and something was in its way.
    """
    for names in ((), HOSTILE_NAMES):
        seen = synthetic_observation(RUN, names=names)
        assert all((seen.tokens, seen.timelines, seen.graphs, seen.works, seen.states))
        write_observation(seen, tmp_path)
        assert read_observation(tmp_path) == seen == synthetic_observation(synthetic_run(n_cases=60), names=names)
        (left_out,) = (state for state in seen.states if not state.is_valid)
        assert left_out.waiting_ratio == max(state.waiting_ratio or 0.0 for state in seen.states)


def test_operators_follow_each_other_within_their_phase() -> None:
    """Each phase has about 500 operators, none begins before the last one ended, and all are within the phase."""
    for timeline in synthetic_observation(RUN).timelines:
        spans = timeline.operators
        assert len(spans) > 500
        ends = [span.start_ns + span.duration_ns for span in spans]
        assert all(end <= span.start_ns for end, span in zip(ends, spans[1:], strict=False))
        assert ends[-1] <= timeline.duration_ns


def test_the_timeline_agrees_with_the_cases() -> None:
    """The operators of a role take together about what its case took."""
    times = {each.case_id: each.measured_ns for each in RUN.judgements}
    for timeline in synthetic_observation(RUN).timelines:
        for role in ("ffn_up", "ffn_swiglu"):
            together_ns = sum(span.duration_ns for span in timeline.operators if span.role == role)
            measured_ns = times[operator_id(timeline.phase, role)]
            assert measured_ns is not None
            assert 0.9 < together_ns / measured_ns < 1.1


def test_graphs_join_what_they_have() -> None:
    """Every edge of a graph joins two of its nodes, and its times are those of the cases."""
    for graph in synthetic_observation(RUN, names=HOSTILE_NAMES).graphs:
        roles = {node.role for node in graph.nodes}
        assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} <= roles
        assert len(roles) == len(graph.nodes)


def test_the_work_of_a_phase_is_that_of_its_operators() -> None:
    """Decode moves what it computes with once, and prefill computes more with each byte."""
    works = {each.case_id: each for each in synthetic_observation(RUN).works}
    for phase in ("prefill", "decode"):
        operators = [each for case_id, each in works.items() if case_id.startswith(f"{operator_id(phase, '')}")]
        assert works[phase_id(phase)].flops == sum(each.flops for each in operators)
    prefill, decode = (works[phase_id(phase)].operational_intensity for phase in ("prefill", "decode"))
    assert prefill is not None
    assert decode is not None
    assert prefill > 10 * decode
