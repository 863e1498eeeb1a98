"""A made-up sweep over layers offloaded."""

from __future__ import annotations

from perfsuite.experiments.offload.splits import OffloadPoint, OffloadSweep, Speed
from perfsuite.records.events import Phase
from perfsuite.trace.placement import Placement, placement

from .synthetic_splits import CARD, GATHER, PROCESSOR, layer, node, split_record


def offload_placement(n_gpu_layers: int, *, phase: Phase = Phase.DECODE, is_refused: bool = True) -> Placement:
    """Return where three layers run of which so many are on the card."""
    gather = node(*GATHER) if is_refused else node(*GATHER[:2])
    on_processor = tuple(each for number in range(3 - n_gpu_layers) for each in layer(number))
    parts = [(PROCESSOR, (gather, *on_processor)), *((CARD, layer(number)) for number in range(3 - n_gpu_layers, 3))]
    found = placement(split_record([(phase, parts)]), phase)
    assert found is not None
    return found


def offload_point(
    n_gpu_layers: int,
    prefill: tuple[float, ...],
    decode: tuple[float, ...],
    *,
    n_disturbed: int = 0,
    is_refused: bool = True,
) -> OffloadPoint:
    """Return a point with the speeds of its processes; a phase without any was not run."""
    speeds = ((Phase.PREFILL, prefill), (Phase.DECODE, decode))
    return OffloadPoint(
        n_gpu_layers=n_gpu_layers,
        speeds=tuple(Speed(phase=phase, samples_tokens_per_s=samples) for phase, samples in speeds if samples),
        placements=tuple(
            offload_placement(n_gpu_layers, phase=phase, is_refused=is_refused) for phase, samples in speeds if samples
        ),
        n_disturbed=n_disturbed,
    )


def offload_sweep(*points: OffloadPoint) -> OffloadSweep:
    """Return a sweep of these points, or of three."""
    usual = (
        offload_point(0, (100.0, 90.0, 120.0), (10.0, 11.0, 12.0)),
        offload_point(3, (300.0, 310.0, 290.0), (6.0, 7.0, 5.0), n_disturbed=2),
        offload_point(1, (200.0, 210.0, 190.0), (20.0, 21.0, 19.0)),
    )
    return OffloadSweep(engine_version="llama 1, ggml 1", points=points or usual)
