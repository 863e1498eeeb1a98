"""How far a draft runs ahead, and how often the target agrees."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.expectation.speculation import Drafting, Speculation
from tests.catalogue_workloads import catalogue_weights


@given(st.floats(0.0, 0.999), st.integers(1, 12))
def test_the_tokens_of_a_round_are_the_papers(acceptance_ratio: float, n_draft: int) -> None:
    """A round yields (1 - a^(g + 1)) / (1 - a) tokens; with nothing accepted one, with everything g + 1."""
    closed = (1 - acceptance_ratio ** (n_draft + 1)) / (1 - acceptance_ratio)
    found = Speculation(n_draft=n_draft, acceptance_ratio=acceptance_ratio)
    assert found.tokens_per_round == pytest.approx(closed)
    assert Speculation(n_draft=n_draft, acceptance_ratio=1.0).tokens_per_round == n_draft + 1


def test_the_tokens_of_a_round_are_those_of_a_drawn_one() -> None:
    """Rounds that are drawn token by token yield as many on average."""
    source = random.Random(7)

    def one_round() -> int:
        accepted = 0
        while accepted < 4 and source.random() < 0.7:
            accepted += 1
        return accepted + 1

    drawn = sum(one_round() for _ in range(40_000)) / 40_000
    assert drawn == pytest.approx(Speculation(n_draft=4, acceptance_ratio=0.7).tokens_per_round, abs=0.03)


def test_a_draft_is_known_by_all_that_its_time_depends_on() -> None:
    """Its weights, or that it has none, and how it runs."""
    speculation = Speculation(n_draft=3, acceptance_ratio=0.5)
    weights = catalogue_weights("smollm2-135m-q8_0")
    assert Drafting(weights=None, speculation=speculation).identity == "ngram:3:0.5"
    assert Drafting(weights=weights, speculation=speculation).identity == f"{weights.identity}:3:0.5"
