"""What hunts for shapes were asked for."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from perfsuite.experiments.shapes.bounds import Bounds, bounds_of, types_within
from perfsuite.experiments.shapes.budget import HUNT_BUDGETS, HuntBudget
from perfsuite.workload.shapes.operation_shape import Operation
from perfsuite.workload.shapes.shape_case import Subject


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

    def command(self, device: str, case_id: str) -> str:
        """Return the command that runs one hunt again."""
        words = ["pytest", f"--device={device}", *self.given, f"--hypothesis-seed={self.seed}", "-k", case_id]
        return shlex.join(words)

    def types_of(self, operation: Operation) -> tuple[str, ...]:
        return types_within(operation, bounds_of(operation, self.bounds), self.types)
