"""What hunts for shapes were asked for."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path

from perfsuite.experiments.shapes.bounds import Bounds, bounds_of, types_within
from perfsuite.workload.shapes.operation_shape import Operation
from perfsuite.workload.shapes.shape_case import Subject

#: The kind of hunts, whose margin holds for all shapes, hunted and kept.
HUNT = "shape-hunt"


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntBudget:
    """A profile of hunts: how many shapes, and how much is measured of one.

    A screen needs no second look: whatever is far from the margin is decided by the first pairs, and what is near it is
    no finding that a hunt is for.
    """

    #: Shapes that one hunt draws, as Hypothesis counts examples.
    n_examples: int
    #: For all hunts together, s. Shrinking what was found is not cut short.
    limit_s: float
    #: Pairs of the screen, and of each confirmation; samples where there is nothing to pair with.
    n_pairs: int
    #: One-sided error of the bound that flags, in each process.
    alpha: float
    #: Fresh processes that must all flag what the screen did.
    n_confirmations: int = 2

    @property
    def told(self) -> str:
        limit = f"{self.limit_s:g} s" if self.limit_s < 120 else f"{self.limit_s / 60:g} min"
        return f"{self.n_examples} shapes a hunt, {limit} for all"


#: By the names of the profiles.
HUNT_BUDGETS = {
    "quick": HuntBudget(n_examples=500, limit_s=60.0, n_pairs=10, alpha=0.05),
    "default": HuntBudget(n_examples=500, limit_s=600.0, n_pairs=16, alpha=0.025),
    "nightly": HuntBudget(n_examples=2000, limit_s=4 * 3600.0, n_pairs=24, alpha=0.01, n_confirmations=3),
}


@dataclass(kw_only=True)
class TimeShares:
    """Shares a time among hunts: each gets its part of what those before it have left."""

    left_s: float
    n_left: int
    _started_s: float = 0.0

    def start(self) -> float:
        """Begin a hunt, and return until when it may generate, by `time.monotonic`."""
        self._started_s = time.monotonic()
        return self._started_s + self.left_s / max(1, self.n_left)

    def finish(self) -> None:
        """End a hunt; what it took beyond its share, to shrink, is not taken from the others."""
        share_s = self.left_s / max(1, self.n_left)
        self.left_s -= min(share_s, time.monotonic() - self._started_s)
        self.n_left -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntRequest:
    """What hunts were asked for."""

    operations: tuple[Operation, ...]
    subjects: tuple[Subject, ...]
    types: tuple[str, ...]
    #: Of the dimensions that were named; the others have their defaults.
    bounds: Bounds
    #: Where the suite's tiled kernels are read, if not from the package.
    kernels_dir: Path | None
    profile: str
    #: What Hypothesis draws with, as ``--hypothesis-seed`` takes it.
    seed: str
    #: The options as they were given, but for the seed.
    given: tuple[str, ...] = ()

    @property
    def budget(self) -> HuntBudget:
        return HUNT_BUDGETS[self.profile]

    @property
    def told(self) -> str:
        """What is hunted and with which seed, for the header of a run."""
        operations, subjects = (", ".join(each.value for each in kind) for kind in (self.operations, self.subjects))
        kernels = "" if self.kernels_dir is None else f" from {self.kernels_dir}"
        return (
            f"shapes of {operations} by {subjects}{kernels}, profile {self.profile} ({self.budget.told}), "
            f"drawn again by --hypothesis-seed={self.seed}"
        )

    def command(self, case_id: str) -> str:
        words = ["pytest", *self.given, f"--hypothesis-seed={self.seed}", "-k", case_id]
        return shlex.join(words)

    def types_of(self, operation: Operation) -> tuple[str, ...]:
        return types_within(operation, bounds_of(operation, self.bounds), self.types)
