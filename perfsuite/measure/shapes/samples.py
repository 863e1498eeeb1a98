"""What measuring a shape leaves."""

from __future__ import annotations

from dataclasses import dataclass


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
