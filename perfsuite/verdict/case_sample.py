"""What one process says about one case."""

from __future__ import annotations

from perfsuite.expectation.cases import REST_ROLE, Case
from perfsuite.trace.samples import ReplicateSamples


def sample_of(case: Case, replicate: ReplicateSamples) -> int | None:
    """Return the sample of a phase or operator case, ns; None where the process did not record it."""
    assert case.phase is not None
    if case.kind == "phase":
        return replicate.phase_ns.get(case.phase)
    if case.role == REST_ROLE:
        return replicate.rest_ns.get(case.phase)
    return replicate.operator_ns.get(case.phase, {}).get(case.role or "")
