"""What running a kernel alone, and again followed by duplicates of itself, has shown."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from perfsuite.records.codec import Plain


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicationRound:
    """One base run and one duplicated run, each between two ``clFinish``."""

    #: Host time from before the first enqueue to after ``clFinish``.
    base_ns: int
    duplicated_ns: int
    #: END - START of the single launch of the base run.
    base_execution_ns: int
    #: Sum of END - START over the 1 + n launches of the duplicated run.
    duplicates_execution_ns: int
    #: Device clock from the END of the first of them to the END of the last.
    duplicates_occupied_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDuplication(Plain):
    """The rounds of one kernel.

    With n duplicates, L the host time of a run, and a median over the rounds:

    - ground truth ``G = (L_duplicated - L_base) / n``: what one launch more adds to a run, its dispatch included;
    - execution, the mean of END - START over the launches of the duplicated runs: what the suite shows as a kernel's
      time;
    - occupied, ``(END_last - END_first) / n``: what one launch more adds to the device's time line.

    *Source*: lm-Meter, kernel duplication (n = 50 above 1 ms, 1000 below).
    """

    #: The case id of a kernel of the suite's own, or phase and name of one of the engine's.
    name: str
    #: Duplicates in each round, and how many its length would call for.
    n_duplicates: int
    n_wanted: int
    rounds: tuple[DuplicationRound, ...]
    #: Why there is no ground truth, or why it cannot be trusted.
    problem: str | None = None

    @property
    def ground_truths_ns(self) -> tuple[float, ...]:
        return tuple((each.duplicated_ns - each.base_ns) / self.n_duplicates for each in self.rounds)

    @property
    def ground_truth_ns(self) -> float | None:
        """The median of G; None without rounds."""
        return median(self.ground_truths_ns) if self.rounds else None

    @property
    def execution_ns(self) -> float | None:
        """The median of the mean END - START; None without rounds."""
        launches = self.n_duplicates + 1
        return median(each.duplicates_execution_ns / launches for each in self.rounds) if self.rounds else None

    @property
    def occupied_ns(self) -> float | None:
        """The median of what a launch more adds to the device's time line; None without rounds."""
        return median(each.duplicates_occupied_ns / self.n_duplicates for each in self.rounds) if self.rounds else None

    @property
    def base_execution_ns(self) -> float | None:
        """The median END - START of the launch without duplicates; None without rounds."""
        return median(each.base_execution_ns for each in self.rounds) if self.rounds else None


#: The length at which fewer duplicates do, and how many there are above and below.
LONG_KERNEL_NS = 1_000_000
N_LONG, N_SHORT = 50, 1000
#: With fewer the base run's own noise is too large a part of G.
N_LEAST = 10


def duplicates_wanted(kernel_ns: float) -> int:
    """Return n for a kernel's length: 50 above 1 ms, 1000 below. *Source*: lm-Meter, kernel duplication."""
    return N_LONG if kernel_ns > LONG_KERNEL_NS else N_SHORT


def duplicates_within(kernel_ns: float, n_rounds: int, budget_ns: int) -> int:
    """Return n for a kernel's length, less where its rounds would take longer than `budget_ns`, `N_LEAST` at least."""
    affordable = int(budget_ns / max(1, n_rounds) / max(1.0, kernel_ns))
    return max(N_LEAST, min(duplicates_wanted(kernel_ns), affordable))
