"""Speculative decoding: how far a draft runs ahead, and how often the target agrees."""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfsuite.errors import PerfsuiteError
from perfsuite.workload.architecture import Architecture
from perfsuite.workload.model_shape import ModelShape
from perfsuite.workload.weights import Weights

#: More tokens than any draft gets right.
MOST_DRAFT = 64

#: By how much the vocabularies of draft and target may differ. *Source*: ``common/speculative.cpp`` of llama.cpp.
_VOCABULARY_DIFFERENCE = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """How far a draft runs ahead, and how often the target agrees."""

    #: Tokens that the draft proposes in a round.
    n_draft: int = 4
    #: Chance that the target accepts a proposed token, independent of the others.
    acceptance_ratio: float = 0.8

    def __post_init__(self) -> None:
        """Refuse what is no round, or no chance."""
        if not 1 <= self.n_draft <= MOST_DRAFT:
            raise PerfsuiteError(f"--draft-tokens={self.n_draft}: expected an integer from 1 to {MOST_DRAFT}")
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

    def break_even_ratio(self, round_steps: float) -> float | None:
        """Return the acceptance from which a round pays that takes as long as `round_steps` steps without a draft.

        None where it pays at none: the round takes longer than all of its tokens would.
        """
        if round_steps > self.n_draft + 1:
            return None
        if round_steps <= 1:
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            pays = replace(self, acceptance_ratio=middle).tokens_per_round >= round_steps
            low, high = (low, middle) if pays else (middle, high)
        return high


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """Who runs ahead of a target, and how."""

    #: None searches the text itself for what followed its last tokens before, which costs nothing.
    weights: Weights | None
    speculation: Speculation

    @property
    def identity(self) -> str:
        """Everything that a time depends on, in one word."""
        draft = "ngram" if self.weights is None else self.weights.identity
        return f"{draft}:{self.speculation.n_draft}:{self.speculation.acceptance_ratio:g}"


def check_vocabularies(text: str, draft: ModelShape | Architecture, target: ModelShape | Architecture) -> None:
    """Refuse a draft, as it was named, that knows other tokens than its target; raises PerfsuiteError."""
    if abs(draft.n_vocab - target.n_vocab) > _VOCABULARY_DIFFERENCE:
        raise PerfsuiteError(
            f"--draft={text}: has a vocabulary of {draft.n_vocab}, expected the target's, {target.n_vocab}"
        )
