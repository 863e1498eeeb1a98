"""Runs a model with different numbers of its layers on a device."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.experiments.offload.splits import SPEED_PHASES, OffloadPoint, OffloadSweep, Speed
from perfsuite.measure.contention import Contention
from perfsuite.measure.launch import run_worker
from perfsuite.measure.llama_plan import with_drawn_layout
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.undisturbed import others_complaint
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.placement import Placement, placement
from perfsuite.units import NS_PER_S


@dataclass(slots=True)
class _Taken:
    """What is known of one number of layers so far."""

    plan: LlamaPlan
    samples: dict[Phase, list[float]] = field(default_factory=lambda: defaultdict(list))
    n_undisturbed: int = 0
    complaints: list[str] = field(default_factory=list)
    placements: tuple[Placement, ...] = ()
    engine_version: str = ""


def measure_offload(
    plan: LlamaPlan,
    backend: OpenClBackend,
    profile: Profile,
    *,
    layers: Sequence[int],
    n_rounds: int,
    announce: Callable[[str], None] = lambda text: None,
    order: random.Random | None = None,
) -> OffloadSweep:
    """Run `plan` with each number of layers: once to see its splits, then in `n_rounds` processes to see its speed.

    Rounds go through all numbers in an order drawn anew. A process that had competition is not counted, and as many
    more rounds are run for what is missing. The processes that see the splits come first and are not timed: they also
    leave compiled kernels behind for the others.

    Raises `MeasurementError`: a worker failed, or a number of layers had no process without competition.
    """
    order = order or random.Random()
    taken = [_Taken(plan=replace(plan, n_gpu_layers=each, recorder="none")) for each in layers]
    for each in taken:
        announce(f"splits with {each.plan.n_gpu_layers} layers on the device")
        _see_splits(each, backend)
    for turn in range(2 * n_rounds):
        waiting = [each for each in taken if each.n_undisturbed < n_rounds]
        order.shuffle(waiting)
        for each in waiting:
            announce(f"round {turn + 1}: {each.plan.n_gpu_layers} layers on the device")
            _time(each, backend, profile, order)
    return OffloadSweep(engine_version=taken[0].engine_version, points=tuple(_point(each) for each in taken))


def _see_splits(taken: _Taken, backend: OpenClBackend) -> None:
    payload = run_worker(replace(taken.plan, recorder="splits"), extra_environment=backend.environment())
    record = EngineRecord.from_plain(payload["engine"])
    taken.engine_version = record.engine_version
    if record.n_dropped:
        raise MeasurementError(
            f"{taken.plan.n_gpu_layers} layers on the device: {record.n_dropped} splits found no room; take a shorter "
            "scenario"
        )
    found = (placement(record, phase) for phase in SPEED_PHASES)
    taken.placements = tuple(each for each in found if each is not None)


def _time(taken: _Taken, backend: OpenClBackend, profile: Profile, order: random.Random) -> None:
    """Run one process and keep its speeds if it had the processors for itself."""
    payload = run_worker(with_drawn_layout(taken.plan, order), extra_environment=backend.environment())
    complaint = others_complaint(Contention.from_plain(payload["contention"]), profile)
    if complaint is not None:
        taken.complaints.append(complaint)
        return
    taken.n_undisturbed += 1
    for phase, tokens_per_s in _speeds(payload).items():
        taken.samples[phase].append(tokens_per_s)


def _speeds(payload: Mapping[str, Any]) -> dict[Phase, float]:
    """Return the tokens of each phase over the time that it took, all repetitions together."""
    record = EngineRecord.from_plain(payload["engine"])
    speeds = {}
    for phase in SPEED_PHASES:
        spans = [span for span in record.spans if span.phase is phase]
        duration_ns = sum(span.duration_ns for span in spans)
        if duration_ns > 0:
            speeds[phase] = sum(span.n_tokens for span in spans) * NS_PER_S / duration_ns
    return speeds


def _point(taken: _Taken) -> OffloadPoint:
    if not taken.n_undisturbed:
        raise MeasurementError(
            f"{taken.plan.n_gpu_layers} layers on the device: none of {len(taken.complaints)} processes was "
            f"undisturbed; {taken.complaints[-1]}; run it when nothing else runs"
        )
    return OffloadPoint(
        n_gpu_layers=taken.plan.n_gpu_layers,
        speeds=tuple(
            Speed(phase=phase, samples_tokens_per_s=tuple(samples)) for phase, samples in taken.samples.items()
        ),
        placements=taken.placements,
        n_disturbed=len(taken.complaints),
    )
