"""How much is measured for a verdict on a shape: a fixed budget, so that equal shapes cost alike."""

from __future__ import annotations

from dataclasses import dataclass

from perfsuite.records.outcome import LEAST_PAIRS


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeDesign:
    """Pairs and processes of a verdict.

    A screen needs no second look: whatever is far from the margin is decided by the first pairs, and what is near it is
    no finding that a hunt is for.

    Raises ValueError: the pairs are too few, the error is no chance below 0.5, or nothing would be confirmed.
    """

    #: Pairs of the screen, and of each confirmation; samples where there is nothing to pair with.
    n_pairs: int
    #: One-sided error of the bound that flags, in each process.
    alpha: float
    #: Fresh processes that must all flag what the screen did.
    n_confirmations: int = 2

    def __post_init__(self) -> None:
        if self.n_pairs < LEAST_PAIRS or not 0.0 < self.alpha < 0.5:
            raise ValueError(
                f"alpha is {self.alpha} of {self.n_pairs} pairs, expected 0 to 0.5 of {LEAST_PAIRS} pairs or more"
            )
        if self.n_confirmations < 1:
            raise ValueError(f"n_confirmations is {self.n_confirmations}, expected 1 or more")


QUICK = ShapeDesign(n_pairs=10, alpha=0.05)
DEFAULT = ShapeDesign(n_pairs=16, alpha=0.025)
NIGHTLY = ShapeDesign(n_pairs=24, alpha=0.01, n_confirmations=3)

SHAPE_DESIGNS = {"quick": QUICK, "default": DEFAULT, "nightly": NIGHTLY}
