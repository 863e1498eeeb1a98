"""A made-up sweep over layers offloaded."""

from __future__ import annotations

from perfsuite.experiments.offload.sweep import OffloadPoint, OffloadSweep, Speed
from perfsuite.records.events import Phase
from perfsuite.trace.placement import Placement, placement

from .synthetic_splits import CARD, GATHER, PROCESSOR, layer, node, split_record


def offload_placement(n_gpu_layers: int, phase: Phase) -> Placement:
    """Return where three layers run of which so many are on the card."""
    on_card = range(3 - n_gpu_layers, 3)
    on_processor = tuple(each for number in range(3 - n_gpu_layers) for each in layer(number))
    parts = [(PROCESSOR, (node(*GATHER), *on_processor)), *((CARD, layer(number)) for number in on_card)]
    found = placement(split_record([(phase, parts)]), phase)
    assert found is not None
    return found


def offload_point(
    n_gpu_layers: int, prefill: tuple[float, ...], decode: tuple[float, ...], *, n_disturbed: int = 0
) -> OffloadPoint:
    speeds = ((Phase.PREFILL, prefill), (Phase.DECODE, decode))
    return OffloadPoint(
        n_gpu_layers=n_gpu_layers,
        speeds={phase: Speed(samples_tokens_per_s=samples) for phase, samples in speeds},
        placements=tuple(offload_placement(n_gpu_layers, phase) for phase, _ in speeds),
        n_disturbed=n_disturbed,
    )


def offload_sweep() -> OffloadSweep:
    points = (
        offload_point(0, (100.0, 90.0, 120.0), (10.0, 11.0, 12.0)),
        offload_point(3, (300.0, 310.0, 290.0), (6.0, 7.0, 5.0), n_disturbed=2),
        offload_point(1, (200.0, 210.0, 190.0), (20.0, 21.0, 19.0)),
    )
    return OffloadSweep(engine_version="llama 1, ggml 1", points=points)
