"""Speculative decoding: a draft proposes tokens, the target checks them in one pass.

*Source*: Leviathan, Kalman and Matias, 'Fast Inference from Transformers via Speculative Decoding' (2023), section 3.
"""

from __future__ import annotations

from perfsuite.errors import ArchitectureError
from perfsuite.expectation.op_cost import OpCost
from perfsuite.expectation.operators.dimensions import check_positive, check_share


def expected_tokens(acceptance_ratio: float, n_draft: int) -> float:
    """Tokens that a round yields on average, (1 - a^(g + 1)) / (1 - a), and g + 1 where all are accepted.

    a is the chance that a proposed token is accepted, g the proposals of a round. *Source*: equation 1.
    """
    check_share(acceptance_ratio=acceptance_ratio)
    check_positive(n_draft=n_draft)
    # The sum of the powers, which has no division that fails at 1.
    return float(sum(acceptance_ratio**power for power in range(n_draft + 1)))


def round_cost(draft_step: OpCost, target_check: OpCost, n_draft: int) -> OpCost:
    """Cost of a round: g steps of the draft, and a pass of the target over g + 1 tokens."""
    check_positive(n_draft=n_draft)
    return draft_step * n_draft + target_check


def round_ns(draft_step_ns: float, target_check_ns: float, n_draft: int) -> float:
    """Time of a round: g steps of the draft, and the target's check."""
    check_positive(n_draft=n_draft)
    _check_times(draft_step_ns=draft_step_ns, target_check_ns=target_check_ns)
    return n_draft * draft_step_ns + target_check_ns


def speed_up_ratio(
    acceptance_ratio: float,
    n_draft: int,
    *,
    draft_step_ns: float,
    target_step_ns: float,
    target_check_ns: float | None = None,
) -> float:
    """Time of the target alone over that of speculative decoding, for the same tokens; above 1 it pays.

    E t / (g d + t'), with E of `expected_tokens`. Where the check of g + 1 tokens takes as long as a step, as a pass
    that memory binds does, this is (1 - a^(g + 1)) / ((1 - a)(g c + 1)) with c = d / t. *Source*: theorem 3.8.
    """
    check_ns = target_step_ns if target_check_ns is None else target_check_ns
    _check_times(target_step_ns=target_step_ns)
    tokens = expected_tokens(acceptance_ratio, n_draft)
    return tokens * target_step_ns / round_ns(draft_step_ns, check_ns, n_draft)


def best_n_draft(acceptance_ratio: float, *, draft_step_ns: float, target_step_ns: float, most: int = 16) -> int | None:
    """Proposals of a round that speed up most, 1 to `most`; None where none does."""
    check_positive(most=most)
    ratios = {
        n_draft: speed_up_ratio(acceptance_ratio, n_draft, draft_step_ns=draft_step_ns, target_step_ns=target_step_ns)
        for n_draft in range(1, most + 1)
    }
    best = max(ratios, key=ratios.__getitem__)
    return best if ratios[best] > 1.0 else None


def _check_times(**times_ns: float) -> None:
    for field, value in times_ns.items():
        if not 0.0 < value < float("inf"):
            raise ArchitectureError(f"{field} is {value!r}, expected a positive number")
