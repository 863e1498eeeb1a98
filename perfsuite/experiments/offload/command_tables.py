"""What ``perfsuite offload`` answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from perfsuite.cli.answer import Answer, Part, Sheet, fields_of
from perfsuite.expectation.cases import LlamaWorkload
from perfsuite.experiments.offload.chart import offload_finding
from perfsuite.experiments.offload.splits import SPEED_PHASES, OffloadPoint, OffloadSweep, Speed
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.records.events import Phase
from perfsuite.trace.placement import Placement, in_runs
from perfsuite.units import format_count

#: Raised whenever a key of the JSON changes its meaning.
SCHEMA = 1

#: Splits that are told one by one; of more only their number.
_MOST_SPLITS = 4


def sweep_answer(sweep: OffloadSweep, workload: LlamaWorkload, backend: OpenClBackend) -> Answer:
    """Return speed by layers, where the operators of a call run, what is refused, and what it comes to."""
    return Answer(parts=lambda: _parts(sweep, workload, backend), plain=lambda: _plain(sweep, workload, backend))


def _plain(sweep: OffloadSweep, workload: LlamaWorkload, backend: OpenClBackend) -> dict[str, Any]:
    """Return speeds in tokens per second, and numbers of operators without views."""
    return {
        "schema": SCHEMA,
        "workload": workload.prefix,
        "engine": sweep.engine_version,
        "device": backend.fingerprint,
        "flash_attn": workload.settings.flash_attn,
        "n_gpu_layers_all": workload.weights.architecture.n_layers + 1,
        "points": [
            {
                "n_gpu_layers": each.n_gpu_layers,
                "speeds": [_plain_speed(speed) for speed in each.speeds],
                "n_disturbed": each.n_disturbed,
                "placements": [_plain_placement(placed) for placed in each.placements],
            }
            for each in sweep.points
        ],
    }


def _plain_speed(speed: Speed) -> dict[str, Any]:
    return {
        "phase": speed.phase.value,
        **fields_of(speed, "median_tokens_per_s", "least_tokens_per_s", "most_tokens_per_s"),
        "samples_tokens_per_s": list(speed.samples_tokens_per_s),
    }


def _plain_placement(placed: Placement) -> dict[str, Any]:
    return {
        "phase": placed.phase.value,
        "splits": list(placed.splits),
        "backends": [asdict(each) for each in placed.shares],
        "on_processor": [asdict(each) for each in placed.on_processor],
    }


def _parts(sweep: OffloadSweep, workload: LlamaWorkload, backend: OpenClBackend) -> Iterator[Part]:
    yield f"{workload.prefix} on {backend.device}; {sweep.engine_version}"
    if backend.compatibility_layer:
        yield "The device is a processor, which the backend takes through the suite's compatibility layer."
    yield "\nspeed by layers on the device: median of processes, slowest and fastest"
    yield Sheet(
        ("layers", *(f">{phase.value}" for phase in SPEED_PHASES), "processes"),
        [
            (point.n_gpu_layers, *(_speed_text(point.speed(phase)) for phase in SPEED_PHASES), _processes_text(point))
            for point in sweep.points
        ],
    )
    if any(point.n_disturbed for point in sweep.points):
        yield "Left out are processes that had competition for the processors."
    for phase in SPEED_PHASES:
        yield from _placement_parts(sweep.points, phase)
    yield from _refusal_parts(sweep.points)
    yield f"\n{offload_finding(sweep)}"


def _speed_text(speed: Speed | None) -> str:
    if speed is None:
        return "-"
    least, most = speed.least_tokens_per_s, speed.most_tokens_per_s
    return f"{speed.median_tokens_per_s:.4g}/s ({least:.4g} to {most:.4g})"


def _processes_text(point: OffloadPoint) -> str:
    n_kept = max((len(speed.samples_tokens_per_s) for speed in point.speeds), default=0)
    return f"{n_kept}, {point.n_disturbed} left out" if point.n_disturbed else str(n_kept)


def _placement_parts(points: Sequence[OffloadPoint], phase: Phase) -> Iterator[Part]:
    rows = [
        (
            *(point.n_gpu_layers, len(each.splits), _order_text(each)),
            ", ".join(f"{share.backend} {share.n_operators}" for share in each.shares),
        )
        for point in points
        for each in point.placements
        if each.phase is phase
    ]
    if rows:
        yield f"\n{phase.value}: splits of a call, and operators by backend"
        yield Sheet(("layers", ">splits", "in order", "operators"), rows)


def _order_text(placed: Placement) -> str:
    if len(placed.splits) <= _MOST_SPLITS:
        return in_runs(placed.splits)
    return ", ".join(format_count(share.n_splits, "split") + f" on {share.backend}" for share in placed.shares)


def _refusal_parts(points: Sequence[OffloadPoint]) -> Iterator[Part]:
    """Tell the operators that the device refuses where most layers are on it: there nothing else keeps them back."""
    fullest = max(points, key=lambda point: point.n_gpu_layers)
    kept = [(placed.phase, each) for placed in fullest.placements for each in placed.on_processor]
    refused = [
        (
            *(phase.value, each.op, each.role, each.source_type, " x ".join(map(str, _without_ones(each.ne)))),
            *(each.n_nodes, ", ".join(each.refused_by)),
        )
        for phase, each in kept
        if each.refused_by
    ]
    layers = format_count(fullest.n_gpu_layers, "layer")
    if refused:
        yield f"\nrefused by the device, with {layers} on it"
        yield Sheet(("phase", "operator", "role", "type", "shape", ">nodes", "refused by"), refused)
    else:
        yield f"\nWith {layers} on the device it refuses none of the operators that are left on the processor."
    if others := dict.fromkeys(each.role for _, each in kept if not each.refused_by):
        yield f"Not refused, and on the processor for the place of their weights or inputs: {', '.join(others)}"


def _without_ones(ne: Sequence[int]) -> Sequence[int]:
    n_kept = max((place for place, n in enumerate(ne, 1) if n != 1), default=1)
    return ne[:n_kept]
