"""What judges, sweeps and policies measure with: a process that measures shapes, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from perfsuite.measure.shapes.samples import BenchDescription, Deviation, PairSamples
from perfsuite.workload.shapes.shape_case import ShapeCase


class ShapeMeter(Protocol):
    """Measures cases of one subject, in one process that is not this one.

    Each method raises `ShapeCrashError` where the process died or hung at a case, after which the next call starts a
    new one; and `PerfsuiteError` where the subject cannot run at all.
    """

    @property
    def description(self) -> BenchDescription:
        """On what it measures."""

    def problem(self, case: ShapeCase) -> str | None:
        """Return why the subject cannot compute a case, or None where it can."""

    def verify(self, case: ShapeCase) -> Deviation:
        """Run a case once and compare its output with NumPy's."""

    def samples(self, case: ShapeCase, n_samples: int) -> tuple[int, ...]:
        """Return samples of one case, ns."""

    def pairs(self, old: ShapeCase, new: ShapeCase, n_pairs: int) -> PairSamples:
        """Return samples of two cases that took turns, ABBA."""

    def round(self, cases: Sequence[ShapeCase], *, order_seed: int, n_launches: int | None = None) -> tuple[int, ...]:
        """Return one sample of each case, ns, in the order of the cases; they are run in an order that is drawn.

        A sample has `n_launches`, which is for rounds that are compared with those of another process; where it is left
        out, as many as suit these cases.
        """


class ShapeMeters(Protocol):
    """Where meters of one subject come from."""

    def resident(self) -> ShapeMeter:
        """Return the meter of a process that stays; the same one each time."""

    def fresh(self) -> AbstractContextManager[ShapeMeter]:
        """Start a process that has measured nothing yet, and end it afterwards."""
