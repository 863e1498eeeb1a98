"""Runs a model with different numbers of its layers on a device."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.llama_plan import with_drawn_layout
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Payload, Rule, Series, others_complaint, replicates_of, take_rounds
from perfsuite.records.events import GRAPH_PHASES, EngineRecord, Phase
from perfsuite.trace.placement import Placement, placement
from perfsuite.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Tokens per second in each of some processes."""

    samples_tokens_per_s: tuple[float, ...]

    @property
    def median_tokens_per_s(self) -> float:
        return median(self.samples_tokens_per_s)

    @property
    def least_tokens_per_s(self) -> float:
        return min(self.samples_tokens_per_s)

    @property
    def most_tokens_per_s(self) -> float:
        return max(self.samples_tokens_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadPoint:
    """What was seen with one number of layers on the device."""

    n_gpu_layers: int
    #: By phase that was run.
    speeds: Mapping[Phase, Speed]
    placements: tuple[Placement, ...]
    #: Processes that had competition, whose speeds are left out.
    n_disturbed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadSweep:
    """All points, in the order in which they were asked for."""

    engine_version: str
    points: tuple[OffloadPoint, ...]

    @property
    def phases(self) -> tuple[Phase, ...]:
        return tuple(phase for phase in GRAPH_PHASES if any(phase in each.speeds for each in self.points))

    def fastest(self, phase: Phase) -> tuple[OffloadPoint, Speed]:
        """Return the point with the highest median speed of a phase that was run, and that."""
        ran = [(point, point.speeds[phase]) for point in self.points if phase in point.speeds]
        return max(ran, key=lambda each: each[1].median_tokens_per_s)


def measure_offload(
    plan: LlamaPlan,
    backend: OpenClBackend,
    profile: Profile,
    board: Board,
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
    order, environment = order or random.Random(), backend.environment()
    plans = [replace(plan, n_gpu_layers=each, recorder="none") for each in layers]
    records: list[EngineRecord] = []
    for each in plans:
        where = f"{each.n_gpu_layers} layers on the device"
        announce(f"splits with {where}")
        payload = board.run(replace(each, recorder="splits"), extra_environment=environment)
        records.append(EngineRecord.from_plain(payload.get("engine")))
        if n_dropped := records[-1].n_dropped:
            raise MeasurementError(f"{where}: {n_dropped} splits found no room; take a shorter scenario")
    speeds = [
        Series(
            take=replicates_of(board, partial(with_drawn_layout, each, order), extra_environment=environment),
            rules=(Rule(profile=profile, complain=others_complaint),),
            keep=_speeds,
            name=f"{each.n_gpu_layers} layers on the device",
        )
        for each in plans
    ]
    take_rounds(speeds, n_rounds, order=order, announce=lambda at, _, __, name: announce(f"round {at}: {name}"))
    points = tuple(map(_point, layers, records, speeds))
    return OffloadSweep(engine_version=records[0].engine_version, points=points)


def _speeds(payloads: Sequence[Payload]) -> Mapping[Phase, float]:
    """Return the tokens of each phase over the time that it took, all repetitions together."""
    record = EngineRecord.from_plain(payloads[0].get("engine"))
    speeds = {}
    for phase in GRAPH_PHASES:
        spans = [span for span in record.spans if span.phase is phase]
        duration_ns = sum(span.duration_ns for span in spans)
        if duration_ns > 0:
            speeds[phase] = sum(span.n_tokens for span in spans) * NS_PER_S / duration_ns
    return speeds


def _point(n_layers: int, record: EngineRecord, speeds: Series[Mapping[Phase, float]]) -> OffloadPoint:
    if not speeds.valid:
        raise MeasurementError(
            f"{speeds.name}: none of {len(speeds.complaints)} processes was undisturbed; {speeds.complaints[-1]}; "
            "run it when nothing else runs"
        )
    samples = {phase: tuple(each[phase] for each in speeds.valid if phase in each) for phase in GRAPH_PHASES}
    placements = (placement(record, phase) for phase in GRAPH_PHASES)
    return OffloadPoint(
        n_gpu_layers=n_layers,
        speeds={phase: Speed(samples_tokens_per_s=found) for phase, found in samples.items() if found},
        placements=tuple(each for each in placements if each is not None),
        n_disturbed=len(speeds.complaints),
    )
