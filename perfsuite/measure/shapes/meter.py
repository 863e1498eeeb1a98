"""What judges, sweeps and policies measure with: a process that measures shapes, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from perfsuite.workload.shapes.shape_case import ShapeCase

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """How far an output is from NumPy's in float64."""

    #: ``||out - reference|| / ||reference||``; infinite when a value is missing, not finite, or written out of bounds.
    error_norm: float
    #: The largest error norm that counts as correct.
    tolerance: float

    @property
    def is_correct(self) -> bool:
        """Whether the operation computed what it should; NaN never is."""
        return self.error_norm <= self.tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSamples:
    """Two cases that took turns in one process: a sample of each a pair, ns."""

    old_ns: tuple[int, ...]
    new_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchDescription:
    """On what a subject computes."""

    #: Such as ``AMD EPYC (Intel(R) OpenCL 2025.20)``, or ``ggml CPU, 2 threads``.
    device: str
    #: What computes work-groups, or threads, side by side.
    n_compute_units: int
    #: What must be equal for two runs to be comparable: device, driver, engine.
    fingerprint: tuple[tuple[str, str], ...]


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


class ShapeSession(Protocol):
    """A process that measures shapes until it is closed or crashes, on whatever board."""

    #: What it measures on.
    description: BenchDescription

    @property
    def is_open(self) -> bool:
        """Whether it can be asked."""

    def ask(self, question: Callable[..., Answer], cases: Sequence[ShapeCase], /, **how: Any) -> Answer:
        """Return what a method of `perfsuite.measure.shapes.sampler.Sampler` does for cases.

        Raises `ShapeCrashError` where the process died or hung at a case; `MeasurementError` where there is no answer.
        """

    def close(self) -> None:
        """End the process."""
