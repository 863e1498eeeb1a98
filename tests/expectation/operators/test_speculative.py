"""Speculative decoding."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.speculative import (
    best_n_draft,
    expected_tokens,
    round_cost,
    round_ns,
    speed_up_ratio,
)

_SHARE = st.floats(0.0, 0.999)
_DRAFTS = st.integers(1, 12)


@given(_SHARE, _DRAFTS)
def test_expected_tokens_are_the_papers(acceptance_ratio: float, n_draft: int) -> None:
    """A round yields (1 - a^(g + 1)) / (1 - a) tokens."""
    closed = (1 - acceptance_ratio ** (n_draft + 1)) / (1 - acceptance_ratio)
    assert expected_tokens(acceptance_ratio, n_draft) == pytest.approx(closed)


def test_the_ends_of_acceptance() -> None:
    """Nothing accepted yields the target's own token, everything accepted all proposals and that one."""
    assert expected_tokens(0.0, 5) == 1.0
    assert expected_tokens(1.0, 5) == 6.0


def test_expected_tokens_are_those_of_a_drawn_round() -> None:
    """Rounds that are drawn token by token yield as many on average."""
    source = random.Random(7)

    def one_round() -> int:
        accepted = 0
        while accepted < 4 and source.random() < 0.7:
            accepted += 1
        return accepted + 1

    drawn = sum(one_round() for _ in range(40_000)) / 40_000
    assert drawn == pytest.approx(expected_tokens(0.7, 4), abs=0.03)


def test_a_round_is_the_drafts_steps_and_one_check() -> None:
    """Costs and times of g steps of the draft and of the target's pass add up."""
    draft, target = OpCost(flops=3, read_bytes=5), OpCost(flops=100, read_bytes=70)
    assert round_cost(draft, target, 4) == OpCost(flops=112, read_bytes=90, n_dispatches=5)
    assert round_ns(2.0, 10.0, 4) == 18.0


@given(_SHARE, _DRAFTS, st.floats(0.01, 1.0))
def test_the_speed_up_is_the_theorems(acceptance_ratio: float, n_draft: int, c: float) -> None:
    """(1 - a^(g + 1)) / ((1 - a)(g c + 1)) where the check takes as long as a step."""
    ratio = speed_up_ratio(acceptance_ratio, n_draft, draft_step_ns=c * 50.0, target_step_ns=50.0)
    closed = (1 - acceptance_ratio ** (n_draft + 1)) / ((1 - acceptance_ratio) * (n_draft * c + 1))
    assert ratio == pytest.approx(closed)


def test_a_longer_check_speeds_up_less() -> None:
    """Checking g + 1 tokens in twice the time halves what a free draft gains."""
    fast, slow = (
        speed_up_ratio(0.8, 3, draft_step_ns=1e-9, target_step_ns=10.0, target_check_ns=check) for check in (10.0, 20.0)
    )
    assert fast == pytest.approx(2 * slow)


def test_the_best_number_of_proposals_is_none_where_none_pays() -> None:
    """A draft that is rarely right and as slow as its target slows down; one that is cheap and right pays often."""
    assert best_n_draft(0.1, draft_step_ns=10.0, target_step_ns=10.0) is None
    assert best_n_draft(1.0, draft_step_ns=0.1, target_step_ns=10.0, most=8) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.5, 1, 1.0, 1.0), "acceptance_ratio is 1.5, expected a number from 0 to 1"),
        ((0.5, 0, 1.0, 1.0), "n_draft is 0"),
        ((0.5, 1, 0.0, 1.0), "draft_step_ns is 0.0, expected a positive number"),
        ((0.5, 1, 1.0, -1.0), "target_step_ns is -1.0, expected a positive number"),
    ],
)
def test_impossible_rounds_are_refused(arguments: tuple[float, int, float, float], message: str) -> None:
    """Shares beyond 1, no proposals and times of nothing are named."""
    acceptance_ratio, n_draft, draft_step_ns, target_step_ns = arguments
    with pytest.raises(ArchitectureError, match=message):
        speed_up_ratio(acceptance_ratio, n_draft, draft_step_ns=draft_step_ns, target_step_ns=target_step_ns)
