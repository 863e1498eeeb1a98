"""How many shapes hunts draw, and how long they may generate new ones."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntBudget:
    """A profile of hunts."""

    #: Shapes that one hunt draws, as Hypothesis counts examples.
    n_examples: int
    #: For all hunts together, s. Shrinking what was found is not cut short.
    limit_s: float

    @property
    def told(self) -> str:
        limit = f"{self.limit_s:g} s" if self.limit_s < 120 else f"{self.limit_s / 60:g} min"
        return f"{self.n_examples} shapes a hunt, {limit} for all"


#: By the names of the profiles; how much is measured of a shape goes by the same names.
HUNT_BUDGETS = {
    "quick": HuntBudget(n_examples=500, limit_s=60.0),
    "default": HuntBudget(n_examples=500, limit_s=600.0),
    "nightly": HuntBudget(n_examples=2000, limit_s=4 * 3600.0),
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
