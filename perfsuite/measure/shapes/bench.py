"""The seam between those who compute operations and the process that measures them."""

from __future__ import annotations

from typing import Protocol

from perfsuite.measure.shapes.samples import BenchDescription, Deviation
from perfsuite.workload.shapes.shape_case import ShapeCase


class BoundOperation(Protocol):
    """An operation with its inputs drawn and its buffers in place."""

    def verify(self) -> Deviation:
        """Run once and compare the output with NumPy's, which nothing was computed of before this is called."""

    def run_ns(self) -> int:
        """Run once, wait, and return what it took: on the device's clock where it has one, else on the host's; > 0."""

    def close(self) -> None:
        """Give back its buffers."""


class ShapeBench(Protocol):
    """One subject on one device, within the process that measures."""

    @property
    def description(self) -> BenchDescription:
        """On what it computes."""

    def problem(self, case: ShapeCase) -> str | None:
        """Return why it cannot compute a case, or None where it can."""

    def bound(self, case: ShapeCase, *, seed: int) -> BoundOperation:
        """Draw inputs for a case and place them; `PerfsuiteError` where the device refuses."""
