"""Seconds of a token over prompts of several lengths, and accuracies beside them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.harness_scores import read_scores
from perfsuite.experiments.study.joined import Frontier, Study, TokenKind, TradeOff, join, pareto_frontier
from perfsuite.experiments.study.plan_file import StudyPlan
from perfsuite.experiments.study.token_latency import TokenLatency, over_prompts
from tests.experiments.study.conftest import accuracies

PAIRS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12)


def frontier(*pairs: tuple[float, float]) -> Frontier:
    """Return the frontier of latencies and accuracies; each is called by its place."""
    found = [TradeOff(name=str(at), latency_s=pair[0], accuracy=pair[1]) for at, pair in enumerate(pairs)]
    return pareto_frontier(found)


def names(found: Frontier) -> list[str]:
    return [each.name for each in found.members]


def test_what_is_slower_and_no_better_is_left_out() -> None:
    assert names(frontier((4, 0.9), (1, 0.2), (2, 0.6), (3, 0.5), (5, 0.9), (1, 0.1))) == ["1", "2", "0"]
    assert names(frontier((1, 0.5), (1, 0.5), (2, 0.5))) == ["0", "1"]


@given(pairs=PAIRS)
def test_everything_else_is_dominated_by_a_member(pairs: list[tuple[float, float]]) -> None:
    """Who is left out is beaten by somebody on the frontier, who is beaten by nobody."""
    found = frontier(*pairs)
    inside = set(names(found))
    for at, (latency_s, accuracy) in enumerate(pairs):
        better = [
            other
            for other, (other_s, other_accuracy) in enumerate(pairs)
            if other_s <= latency_s
            and other_accuracy >= accuracy
            and (other_s, other_accuracy) != (latency_s, accuracy)
        ]
        assert bool(better) is (str(at) not in inside)
        assert not better or inside & set(map(str, better))


@pytest.mark.parametrize(
    "pairs", [[(1.0, 0.1), (2.0, 0.5), (3.0, 0.55), (5.0, 0.6)], [(1.0, 0.0), (2.0, 0.75), (3.0, 1.0), (5.0, 1.0)]]
)
def test_the_knee_is_furthest_above_the_chord(pairs: list[tuple[float, float]]) -> None:
    """Heights of 0, 0.55, 0.4 and 0 have one; of 0.5 and 0.5 the faster counts."""
    knee = frontier(*pairs).knee
    assert knee is not None
    assert knee.name == "1"


@given(pairs=PAIRS, scale_s=st.sampled_from([0.5, 4.0]), scale=st.sampled_from([0.25, 8.0]))
def test_the_knee_depends_on_no_unit(pairs: list[tuple[float, float]], scale_s: float, scale: float) -> None:
    knee = frontier(*pairs).knee
    other = frontier(*((latency_s * scale_s, accuracy * scale) for latency_s, accuracy in pairs)).knee
    assert (knee and knee.name) == (other and other.name)


@pytest.mark.parametrize(
    "pairs",
    [
        [(1, 0.5)],
        [(1, 0.5), (2, 0.9)],
        [(1, 0.5), (1, 0.5)],
        [(1.0, 0.0), (2.0, 0.5), (3.0, 1.0)],
        [(1.0, 0.0), (3.0, 0.25), (4.0, 1.0)],
    ],
)
def test_nothing_above_the_chord_is_no_knee(pairs: list[tuple[float, float]]) -> None:
    assert frontier(*pairs).knee is None


def test_nothing_and_no_time_are_refused() -> None:
    with pytest.raises(PerfsuiteError, match="nothing to compare"):
        pareto_frontier([])
    for latency_s in (0.0, -1.0, math.nan):
        with pytest.raises(PerfsuiteError, match="0 takes"):
            frontier((latency_s, 0.5))


Latencies = dict[str, TokenLatency]


def joined(plan: StudyPlan, latencies: Latencies) -> Study:
    return join(plan, read_scores(plan), latencies)


def test_a_point_has_both(plan: StudyPlan, latencies: Latencies) -> None:
    point = joined(plan, latencies).points[1]
    assert (point.task, point.run.name, point.normalised_accuracy) == ("arc_easy", "small q4_0", pytest.approx(0.45))
    assert [point.latency_s(kind) for kind in TokenKind] == [1.25, 2.0]


def test_frontiers_are_of_all_and_of_each_suite(plan: StudyPlan, latencies: Latencies) -> None:
    """By input tokens quantised models are slower and worse, by output tokens faster."""
    study = joined(plan, latencies)
    found = {(each.suite, each.kind): [member.name for member in each.frontier.members] for each in study.frontiers}
    assert found == {
        (None, TokenKind.INPUT): ["small f16", "large f16"],
        (None, TokenKind.OUTPUT): ["small q4_0", "small f16", "large q4_0", "large f16"],
        ("smalls", TokenKind.INPUT): ["small f16"],
        ("smalls", TokenKind.OUTPUT): ["small q4_0", "small f16"],
        ("larges", TokenKind.INPUT): ["large f16"],
        ("larges", TokenKind.OUTPUT): ["large q4_0", "large f16"],
    }
    knee = study.frontier("arc_easy", TokenKind.OUTPUT).knee
    assert knee is not None
    assert knee.name == "large q4_0"


def test_one_suite_has_its_frontiers_once(plan: StudyPlan, latencies: Latencies) -> None:
    """A model without an original has no score."""
    one = replace(plan, runs=tuple(replace(run, suite="all") for run in plan.runs if run.name != "small f16"))
    study = joined(one, latencies)
    assert [each.suite for each in study.frontiers] == [None, None]
    assert [row.run.name for row in study.quantizations] == ["large q4_0"]


def test_quantisations_are_scored_beside_their_originals(plan: StudyPlan, latencies: Latencies) -> None:
    """0.9, 0.8 and 2 give 3 / (1/0.9 + 1.25 + 0.5); the mean of a task is over its quantisations."""
    study = joined(plan, latencies)
    small, large = study.quantizations
    assert (small.run.name, small.original.name) == ("small q4_0", "small f16")
    assert small.score == pytest.approx(3 / (1 / 0.9 + 1.25 + 0.5))
    assert large.score == pytest.approx(3 / (1 / 0.96 + 1.25 + 0.5))
    assert small.score is not None
    assert large.score is not None
    assert study.mean_scores() == {"arc_easy": pytest.approx((small.score + large.score) / 2)}


def test_guessing_has_no_score(plan: StudyPlan, latencies: Latencies, tmp_path: Path) -> None:
    """A quantised model at chance has ratios and no H_Q, an original at chance neither; the mean is not known."""
    at_chance = replace(plan, tasks=(replace(plan.tasks[0], chance=0.36),))
    small, large = joined(at_chance, latencies).quantizations
    assert small.ratios is not None
    assert (small.ratios.accuracy_ratio, small.score) == (0.0, None)
    assert large.score is not None
    assert joined(at_chance, latencies).mean_scores() == {"arc_easy": None}
    accuracies(tmp_path, "small f16", 0.36)
    small, _ = joined(at_chance, latencies).quantizations
    assert (small.ratios, small.score) == (None, None)


def test_a_run_without_a_latency_is_refused(plan: StudyPlan, latencies: Latencies) -> None:
    del latencies["small f16"], latencies["large q4_0"]
    with pytest.raises(PerfsuiteError, match="no latency of small f16, large q4_0"):
        joined(plan, latencies)


def test_every_prompt_counts_once() -> None:
    """Three prompts of 10 tokens at 1 s and one of 50 at 3 s: 6 s for 80 tokens; decode 3 x 0.1 and 0.5 s by four."""
    prefills_ns, decodes_ns = {10: [10**9], 50: [3 * 10**9]}, {10: [10**8], 50: [5 * 10**8]}
    found = over_prompts(prefills_ns, decodes_ns, {10: 3, 50: 1}, source="measured")
    assert found.prefill_samples_s == (pytest.approx(6.0 / 80.0),)
    assert found.decode_samples_s == (pytest.approx(0.2),)


def test_processes_are_samples_and_the_median_counts() -> None:
    found = over_prompts({1: [5, 1, 9], 2: [5, 1, 9, 7]}, {1: [30, 10, 20], 2: [30, 10, 20]}, {1: 1, 2: 1}, source="x")
    assert len(found.prefill_samples_s) == 3
    assert found.prefill_s_per_token == pytest.approx(10e-9 / 3)
    assert found.decode_s_per_token == pytest.approx(20e-9)


@pytest.mark.parametrize("samples", [(), (0.0,), (1.0, -1.0), (math.nan,), (math.inf,), (1e-300,), (1e300,)])
def test_what_is_no_latency_is_refused(samples: tuple[float, ...]) -> None:
    with pytest.raises(PerfsuiteError, match=r"latency from run\.json"):
        TokenLatency(prefill_samples_s=(1.0,), decode_samples_s=samples, source="run.json")
    with pytest.raises(PerfsuiteError, match="expected times above 0"):
        TokenLatency(prefill_samples_s=samples, decode_samples_s=(1.0,), source="run.json")
