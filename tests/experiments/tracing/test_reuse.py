"""The verdict on the experts of a run."""

from __future__ import annotations

import random

from perfsuite.expectation.expert_reuse import reuse_expectation
from perfsuite.experiments.tracing.reuse import judge_reuse
from perfsuite.records.outcome import Finding, Outcome
from perfsuite.trace.experts.reuse import expert_reuse
from perfsuite.workload.architecture import MixtureOfExperts
from tests.synthetic_statistics import experts_of

MOE = MixtureOfExperts(n_experts=60, n_experts_used=4, n_ff_expert=64, n_ff_shared=64)
Batches = list[list[int]]


def reuse_judged(layers: list[Batches], n_steps: int | None = None, n_layers: int | None = None) -> Finding:
    """Judge the choices of each layer and step."""
    chosen = [(step, layer, [batch]) for layer, batches in enumerate(layers) for step, batch in enumerate(batches)]
    n_layers = n_layers or len(layers)
    expected = reuse_expectation(MOE, n_layers, n_steps or len(layers[0]))
    return judge_reuse(expert_reuse(experts_of(chosen), 60), expected, n_layers=n_layers)


def drawn(n_steps: int, n_experts: int = 60, seed: int = 1) -> Batches:
    """Return the choices of a router that prefers none of so many experts."""
    chance = random.Random(seed)
    return [chance.sample(range(n_experts), 4) for _ in range(n_steps)]


def test_a_router_without_preference_passes() -> None:
    """Its distance is within the bounds, and that it prefers none is told."""
    finding = reuse_judged([drawn(60, seed=layer) for layer in range(4)])
    assert finding.outcome is Outcome.PASS
    assert "it prefers none" in finding.reason


def test_a_preference_is_told_and_no_fault() -> None:
    """A router of 12 favourites reuses them sooner."""
    finding = reuse_judged([drawn(60, n_experts=12, seed=layer) for layer in range(4)])
    assert finding.outcome is Outcome.PASS
    assert "a cache of experts hits more often" in finding.reason


def test_a_router_that_takes_turns_is_left_undecided() -> None:
    """One that goes round all experts reuses none sooner than after 15 steps, later than chance."""
    turns = [[(4 * step + each) % 60 for each in range(4)] for step in range(60)]
    finding = reuse_judged([turns] * 4)
    assert finding.outcome is Outcome.INCONCLUSIVE
    assert "more evenly than chance" in finding.reason


def test_a_token_with_one_expert_twice_is_impossible() -> None:
    """No router chooses one expert twice for a token: the ids were read wrongly."""
    batches = drawn(60)
    batches[7] = [5, 5, 6, 7]
    finding = reuse_judged([batches])
    assert finding.outcome is Outcome.IMPOSSIBLE
    assert "3 different experts, expected 4" in finding.reason


def test_missing_choices_are_invalid() -> None:
    """A layer or a step that is not there is not judged, and neither is nothing."""
    assert reuse_judged([drawn(60)], n_layers=2).outcome is Outcome.INVALID
    assert reuse_judged([drawn(60)], n_steps=61).outcome is Outcome.INVALID
    assert judge_reuse((), reuse_expectation(MOE, 2, 60), n_layers=2).outcome is Outcome.INVALID


def test_a_short_run_is_undecided() -> None:
    """In six steps hardly an expert is seen twice."""
    assert reuse_judged([drawn(6)]).outcome is Outcome.INCONCLUSIVE
