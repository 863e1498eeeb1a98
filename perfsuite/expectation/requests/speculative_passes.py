"""Speculative decoding: a small draft proposes tokens, and the target verifies them all in one pass."""

from __future__ import annotations

import numpy as np

from perfsuite.expectation.requests.composition import Passes
from perfsuite.expectation.requests.step_costs import CostArrays, Counts, StepCosts
from perfsuite.expectation.speculation import Speculation
from perfsuite.records.op_cost import COST_FIELDS, PassCost

_DRAFT = "draft_"


class SpeculativePasses:
    """The passes of a target and its draft, which both read the prompt.

    A decode step is one token's part of a round: the draft's steps one after the other, the target's pass over what
    they propose and one token more, divided by the tokens that the round is expected to give, rounded to integers.
    What the draft does is reported by kinds of its own, ``draft_gemm`` and so on.
    """

    def __init__(self, target: Passes, draft: Passes, speculation: Speculation) -> None:
        self._target = target
        self._draft = draft
        self.speculation = speculation

    def prefill(self, n_prompt: int) -> PassCost:
        """Cost a prompt that both read."""
        draft = self._draft.prefill(n_prompt).by_operator
        prefixed = {f"{_DRAFT}{name}": cost for name, cost in draft.items()}
        return PassCost(by_operator={**self._target.prefill(n_prompt).by_operator, **prefixed})

    def decode(self, n_past: int, n_steps: int, n_tokens: int = 1) -> StepCosts:
        """Cost the expected part of a round for every token generated; see `Passes.decode`."""
        n_draft, share = self.speculation.n_draft, 1.0 / self.speculation.tokens_per_round
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
