"""Seconds of a token over prompts of several lengths, and accuracies beside them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.study.command import over_prompts
from perfsuite.experiments.study.harness_scores import TaskScores, read_scores
from perfsuite.experiments.study.joined import (
    Study,
    TokenKind,
    harmonic_quantization,
    join,
    knee_of,
    pareto_members,
    quantization_ratios,
)
from perfsuite.experiments.study.plan_file import StudyPlan, StudyTask, TokenLatency
from tests.experiments.study.conftest import accuracies

PAIRS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12)


def members(*pairs: tuple[float, float]) -> list[str]:
    """Return the frontier of latencies and accuracies; each is called by its place."""
    return pareto_members({str(at): pair for at, pair in enumerate(pairs)})


def knee(*pairs: tuple[float, float]) -> str | None:
    names = members(*pairs)
    found = knee_of([pairs[int(name)] for name in names])
    return None if found is None else names[found]


def test_what_is_slower_and_no_better_is_left_out() -> None:
    assert members((4, 0.9), (1, 0.2), (2, 0.6), (3, 0.5), (5, 0.9), (1, 0.1)) == ["1", "2", "0"]
    assert members((1, 0.5), (1, 0.5), (2, 0.5)) == ["0", "1"]


@given(pairs=PAIRS)
def test_everything_else_is_dominated_by_a_member(pairs: list[tuple[float, float]]) -> None:
    """Who is left out is beaten by somebody on the frontier, who is beaten by nobody."""
    inside = set(members(*pairs))
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
    assert knee(*pairs) == "1"


@given(pairs=PAIRS, scale_s=st.sampled_from([0.5, 4.0]), scale=st.sampled_from([0.25, 8.0]))
def test_the_knee_depends_on_no_unit(pairs: list[tuple[float, float]], scale_s: float, scale: float) -> None:
    assert knee(*pairs) == knee(*((latency_s * scale_s, accuracy * scale) for latency_s, accuracy in pairs))


@pytest.mark.parametrize(
    "pairs",
    [
        [(1, 0.5)],
        [(1, 0.5), (1, 0.5)],
        [(1.0, 0.0), (2.0, 0.5), (3.0, 1.0)],
        [(1.0, 0.0), (3.0, 0.25), (4.0, 1.0)],
    ],
)
def test_nothing_above_the_chord_is_no_knee(pairs: list[tuple[float, float]]) -> None:
    assert knee(*pairs) is None


Latencies = dict[str, TokenLatency]


def joined(plan: StudyPlan, latencies: Latencies) -> Study:
    return join(plan, read_scores(plan), latencies)


def test_frontiers_are_of_all_and_of_each_suite(plan: StudyPlan, latencies: Latencies) -> None:
    """By input tokens quantised models are slower and worse, by output tokens faster."""
    study = joined(plan, latencies)
    found = {(each.suite, each.kind): [member.run.name for member in each.members] for each in study.frontiers}
    assert found == {
        (None, TokenKind.INPUT): ["small f16", "large f16"],
        (None, TokenKind.OUTPUT): ["small q4_0", "small f16", "large q4_0", "large f16"],
        ("smalls", TokenKind.INPUT): ["small f16"],
        ("smalls", TokenKind.OUTPUT): ["small q4_0", "small f16"],
        ("larges", TokenKind.INPUT): ["large f16"],
        ("larges", TokenKind.OUTPUT): ["large q4_0", "large f16"],
    }
    found_knee = study.frontier("arc_easy", TokenKind.OUTPUT).knee
    assert found_knee is not None
    assert found_knee.run.name == "large q4_0"


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
    assert (small.ratios[0], small.score) == (0.0, None)
    assert large.score is not None
    assert joined(at_chance, latencies).mean_scores() == {"arc_easy": None}
    accuracies(tmp_path, "small f16", 0.36)
    small, _ = joined(at_chance, latencies).quantizations
    assert (small.ratios, small.score) == (None, None)


def test_every_prompt_counts_once() -> None:
    """Three prompts of 10 tokens at 1 s and one of 50 at 3 s: 6 s for 80 tokens; decode 3 x 0.1 and 0.5 s by four."""
    prefills_ns, decodes_ns = {10: [10**9], 50: [3 * 10**9]}, {10: [10**8], 50: [5 * 10**8]}
    found = over_prompts(prefills_ns, decodes_ns, {10: 3, 50: 1})
    assert found.prefill_samples_s == (pytest.approx(6.0 / 80.0),)
    assert found.decode_samples_s == (pytest.approx(0.2),)


def test_processes_are_samples_and_the_median_counts() -> None:
    found = over_prompts({1: [5, 1, 9], 2: [5, 1, 9, 7]}, {1: [30, 10, 20], 2: [30, 10, 20]}, {1: 1, 2: 1})
    assert len(found.prefill_samples_s) == 3
    assert found.prefill_s_per_token == pytest.approx(10e-9 / 3)
    assert found.decode_s_per_token == pytest.approx(20e-9)


@pytest.mark.parametrize("samples", [(), (1.0, -1.0), (math.nan,), (1e300,)])
def test_what_is_no_latency_is_refused(samples: tuple[float, ...]) -> None:
    with pytest.raises(PerfsuiteError, match="expected times above 0"):
        TokenLatency(prefill_samples_s=samples, decode_samples_s=(1.0,), source="run.json")


def scored(reference: float, chance: float = 0.0, accuracies: tuple[float, float] = (0.5, 0.4)) -> list[float]:
    """Return the ratios of a quantisation that is 0.8 and 2 times as fast, and keeps 0.4 of 0.5."""
    times = ((4.0, 2.0), (5.0, 1.0))
    latencies = [
        TokenLatency(prefill_samples_s=(prefill,), decode_samples_s=(decode,), source="x") for prefill, decode in times
    ]
    task = StudyTask(name="a", metric="acc", chance=chance)
    scores = TaskScores(task=task, reference=reference, of_runs={})
    found = quantization_ratios([scores.normalised(each) for each in accuracies], latencies)
    assert found is not None
    return list(found)


def test_a_score_worked_by_hand() -> None:
    """0.8, 0.8 and 2 give 3 / (1.25 + 1.25 + 0.5) = 1, as an unchanged model has."""
    found = scored(0.9)
    assert found == [pytest.approx(0.8), 0.8, 2.0]
    assert harmonic_quantization(found) == pytest.approx(1.0)


def test_both_accuracies_are_normalised_alike() -> None:
    """By the reference alone it cancels; above chance 0.5 and 0.4 of four choices are 0.25 and 0.15, or nothing."""
    for reference in (0.6, 0.9):
        assert scored(reference)[0] == pytest.approx(0.8)
        assert scored(reference, 0.25)[0] == pytest.approx(0.6)
    assert scored(0.85, 0.25, (0.5, 0.25))[0] == 0.0


@pytest.mark.parametrize(("reference", "chance"), [(0.25, 0.25), (0.2, 0.25), (0.0, 0.0)])
def test_a_reference_must_be_better_than_chance(
    plan: StudyPlan, tmp_path: Path, reference: float, chance: float
) -> None:
    accuracies(tmp_path, "ref", reference)
    told = r"^task 'arc_easy', reference ref: .* expected 0 <= guessing < reference <= 1$"
    with pytest.raises(PerfsuiteError, match=told):
        read_scores(replace(plan, tasks=(replace(plan.tasks[0], chance=chance),)))
