"""The verdict on the experts of a run: whether the choices are ones that a router can make, and how it reuses them.

What must hold of any router is judged hard: a token's experts are different ones, as many as the architecture says, and
every layer that routes does so in every step. Whatever breaks this was read wrongly. How far apart the uses of an
expert lie is a property of the router and no fault: a router that prefers some experts stays below the bounds of one
that prefers none, which is told. One that is above them spreads its tokens more evenly than chance does; that is left
undecided, for then nothing was shown of either.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.expectation.expert_reuse import ReuseExpectation
from perfsuite.records.outcome import Finding, Outcome
from perfsuite.trace.experts.reuse import LayerReuse

#: Fewer distances than these are expected by chance in a run that is too short to tell.
LEAST_DISTANCES = 30


def judge_reuse(layers: Sequence[LayerReuse], expected: ReuseExpectation, *, n_layers: int) -> Finding:
    """Judge the experts of an unbroken stretch of decoding.

    IMPOSSIBLE where no router can have made these choices, INVALID where choices are missing, INCONCLUSIVE where the
    stretch is too short or experts are reused later than a router without preference would; else PASS, with what the
    distance says.
    """
    if not layers:
        return Finding(outcome=Outcome.INVALID, reason="no choices of experts were recorded")
    if len(layers) != n_layers or any(each.n_iterations != expected.n_steps for each in layers):
        steps = sorted({each.n_iterations for each in layers})
        seen = f"{len(layers)} layers with {steps[0]} to {steps[-1]} steps"
        return Finding(
            outcome=Outcome.INVALID, reason=f"{seen} were recorded, expected {n_layers} with {expected.n_steps}"
        )
    if broken := next(filter(None, (_broken(each, expected) for each in layers)), None):
        return Finding(outcome=Outcome.IMPOSSIBLE, reason=broken)
    return _distance(layers, expected)


def _broken(layer: LayerReuse, expected: ReuseExpectation) -> str | None:
    """Say what no router can have done; None where all could be."""
    if layer.n_experts > expected.n_experts:
        return f"layer {layer.layer}: an expert {layer.n_experts - 1}, expected 0 to {expected.n_experts - 1}"
    odd = next((batch for batch in layer.batches() if len(batch) != expected.n_used), None)
    if odd is None:
        return None
    return f"layer {layer.layer}: a token with {len(odd)} different experts, expected {expected.n_used}"


def _distance(layers: Sequence[LayerReuse], expected: ReuseExpectation) -> Finding:
    distances = [distance for layer in layers for distance in layer.distances]
    mean, lower, upper = expected.mean_distance, expected.lower_distance, expected.upper_distance
    if expected.n_distances < LEAST_DISTANCES or not distances or mean is None or lower is None or upper is None:
        few = f"{expected.n_steps} steps of {len(layers)} layers are too few to tell how experts are reused"
        return Finding(outcome=Outcome.INCONCLUSIVE, reason=few)
    found = sum(distances) / len(distances)
    text = (
        f"an expert is used again after {found:.2f} steps, {mean:.2f} ({lower:.2f} to {upper:.2f}) where a router "
        f"prefers none; {expected.density_ratio:.1%} of the experts a step"
    )
    if found > upper:
        return Finding(outcome=Outcome.INCONCLUSIVE, reason=f"{text}; it spreads its tokens more evenly than chance")
    preference = "it prefers some, so a cache of experts hits more often" if found < lower else "it prefers none"
    return Finding(outcome=Outcome.PASS, reason=f"{text}; {preference}")
