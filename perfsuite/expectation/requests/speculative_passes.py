"""Speculative decoding: a small draft proposes tokens, and the target verifies them all in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.op_cost import COST_FIELDS, PassCost
from perfsuite.expectation.requests.composition import Passes
from perfsuite.expectation.requests.step_costs import CostArrays, Counts, StepCosts

_DRAFT = "draft_"
#: More tokens than any draft gets right.
_MOST_DRAFT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """How far a draft runs ahead, and how often the target agrees."""

    #: Tokens that the draft proposes in a round.
    n_draft: int = 4
    #: Chance that the target accepts a proposed token, independent of the others.
    acceptance_ratio: float = 0.8

    def __post_init__(self) -> None:
        """Refuse what is no round, or no chance."""
        if not 1 <= self.n_draft <= _MOST_DRAFT:
            raise PerfsuiteError(f"--draft-tokens={self.n_draft}: expected an integer from 1 to {_MOST_DRAFT}")
        if not 0.0 <= self.acceptance_ratio <= 1.0:
            raise PerfsuiteError(f"--acceptance={self.acceptance_ratio:g}: expected a share from 0 to 1")

    @property
    def tokens_per_round(self) -> float:
        """Tokens that a round of g proposals yields on average, (1 - a^(g + 1)) / (1 - a), and g + 1 where a is 1.

        *Source*: Leviathan, Kalman and Matias, 'Fast Inference from Transformers via Speculative Decoding' (2023),
        equation 1.
        """
        # The sum of the powers, which has no division that fails at 1.
        return float(sum(self.acceptance_ratio**power for power in range(self.n_draft + 1)))


class SpeculativePasses:
    """The passes of a target and its draft, which both read the prompt.

    A decode step is one token's part of a round: the draft's steps one after the other, the target's pass over what
    they propose and one token more, divided by the tokens that the round is expected to give, rounded to integers.
    What the draft does is reported by kinds of its own, ``draft_gemm`` and so on.
    """

    def __init__(self, target: Passes, draft: Passes, speculation: Speculation) -> None:
        self._target = target
        self._draft = draft
        self._speculation = speculation

    def prefill(self, n_prompt: int) -> PassCost:
        """Cost a prompt that both read."""
        draft = self._draft.prefill(n_prompt).by_operator
        prefixed = {f"{_DRAFT}{name}": cost for name, cost in draft.items()}
        return PassCost(by_operator={**self._target.prefill(n_prompt).by_operator, **prefixed})

    def decode(self, n_past: int, n_steps: int, n_tokens: int = 1) -> StepCosts:
        """Cost the expected part of a round for every token generated; see `Passes.decode`."""
        n_draft, share = self._speculation.n_draft, 1.0 / self._speculation.tokens_per_round
        target = self._target.decode(n_past, n_steps, n_draft + n_tokens)
        draft = self._draft.decode(n_past, n_steps + n_draft - 1, n_tokens)
        parts = {name: _shared(cost, n_steps, 1, share) for name, cost in target.by_operator.items()}
        for name, cost in draft.by_operator.items():
            parts[f"{_DRAFT}{name}"] = _shared(cost, n_steps, n_draft, share)
        return StepCosts(by_operator=parts)


def _shared(cost: CostArrays, n_steps: int, n_times: int, share: float) -> CostArrays:
    """Add up `n_times` neighbouring steps from each on, and take a share of it."""

    def windowed(values: Counts) -> Counts:
        summed = np.zeros(n_steps, dtype=np.int64)
        for at in range(n_times):
            summed = summed + values[at : at + n_steps]
        rounded: Counts = np.rint(summed * share).astype(np.int64)
        return rounded

    return CostArrays(**{name: windowed(getattr(cost, name)) for name in COST_FIELDS})
