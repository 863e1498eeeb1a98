"""Measures the workloads of sweeps in turn, so that a slow minute is shared by all of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import median

from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.roofline.point import Work
from perfsuite.expectation.roofline.roofline_run import Row, RowKind, subject_of
from perfsuite.expectation.roofline.row_works import PHASE_KINDS, row_works
from perfsuite.expectation.roofline.sweeps import SweepPoint
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import llama_plan, with_drawn_layout
from perfsuite.measure.memory_timeline import measure_memory
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import Payload, Rule, Series, replicates_of, take_rounds
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import EngineRecord
from perfsuite.trace.samples import ReplicateSamples, replicate_samples

#: Fresh processes for each workload, and how many a row needs.
N_PROCESSES = 5
MIN_PROCESSES = 3

#: Short workloads are repeated within a process: a single short prefill is a poor sample.
_REPETITIONS = 3
_SHORT_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What all workloads of a run are measured with."""

    engine: Engine
    profile: Profile
    board: Board
    n_processes: int = N_PROCESSES
    #: Whether operators are rows of their own.
    records_operators: bool = False


@dataclass(frozen=True, slots=True)
class _Sampled:
    """What one process has said: by kind of row and role, ns."""

    engine_version: str
    samples_ns: Mapping[tuple[RowKind, str], int]


def measure_rows(
    points: Sequence[SweepPoint], bench: Bench, progress: Callable[[str], None]
) -> tuple[tuple[Row, ...], str]:
    """Measure each workload in `n_processes` fresh processes; return the rows and the engine's version.

    Rounds go through all workloads in an order drawn anew. A process that had competition is not counted, and as many
    more rounds are run for what is missing.

    Raises MeasurementError: a workload had fewer than `MIN_PROCESSES` undisturbed processes, or its graph is not known;
    or a worker failed; ArchitectureError: the engine refuses the settings for an architecture; nothing was run then.
    """
    order = random.Random()
    # All works come first: what the engine would refuse is told before anything is written or run.
    works = [row_works(point.workload) for point in points]
    taken = [_series(point, bench, order) for point in points]
    take_rounds(
        taken,
        bench.n_processes,
        order=order,
        announce=lambda number, place, n, name: progress(f"round {number}, workload {place} of {n}: {name}"),
    )
    n_needed = min(MIN_PROCESSES, bench.n_processes)
    for point, series in zip(points, taken, strict=True):
        if (n_valid := len(series.valid)) < n_needed:
            raise MeasurementError(
                f"sweep {point.sweep}, {point.setting}: {n_valid} undisturbed processes of {2 * bench.n_processes}, "
                f"needed are {n_needed}; {series.complaints[-1]}; run it when nothing else runs"
            )
    rows = (_rows(*each) for each in zip(points, works, (series.valid for series in taken), strict=True))
    versions = [each.engine_version for series in taken for each in series.valid]
    return tuple(chain.from_iterable(rows)), versions[-1] if versions else ""


def _series(point: SweepPoint, bench: Bench, order: random.Random) -> Series[_Sampled]:
    plan = _plan(point, bench)
    return Series(
        take=replicates_of(bench.board, lambda: with_drawn_layout(plan, order)),
        rules=(Rule(profile=bench.profile),),
        keep=_sampled,
        name=point.setting,
    )


def measure_memories(
    points: Sequence[SweepPoint], bench: Bench, progress: Callable[[str], None]
) -> tuple[MemoryRecord, ...]:
    """Run one process more of each workload, whose memory is sampled and whose times are not used.

    Raises MeasurementError: a worker failed, or the engine cannot be asked what its processor has.
    """
    records = []
    for place, point in enumerate(points):
        progress(f"memory, workload {place + 1} of {len(points)}: {point.setting}")
        plan = replace(_plan(point, bench), recorder="none", n_repetitions=1)
        records.append(measure_memory(point.workload, plan, bench.board))
    return tuple(records)


def _plan(point: SweepPoint, bench: Bench) -> LlamaPlan:
    workload = point.workload
    if not workload.is_analytical:
        raise MeasurementError(
            f"{workload.weights.name}: the graph of {workload.weights.architecture.gguf_architecture!r} is not known, "
            "so that its work cannot be counted"
        )
    plan = llama_plan(
        workload,
        bench.engine,
        gguf_path=bench.board.place_weights(workload.weights),
        cache_dir=bench.board.facts().cache_dir,
        n_threads=point.n_threads,
        n_repetitions=_REPETITIONS if workload.scenario.n_ctx <= _SHORT_TOKENS else 1,
    )
    return plan if bench.records_operators else replace(plan, recorder="none")


def _sampled(payloads: Sequence[Payload]) -> _Sampled:
    record = EngineRecord.from_plain(payloads[0].get("engine"))
    return _Sampled(record.engine_version, dict(_samples(record)))


def _samples(record: EngineRecord) -> Iterator[tuple[tuple[RowKind, str], int]]:
    """Yield one value for each row that a process has measured."""
    for kind, phase in PHASE_KINDS.items():
        durations = [span.duration_ns for span in record.spans if span.phase is phase]
        if durations:
            yield (kind, ""), round(median(durations))
    evaluated = [span for span in record.spans if span.phase in PHASE_KINDS.values()]
    if len({span.phase for span in evaluated}) == len(PHASE_KINDS):
        repetitions = {span.repetition for span in evaluated}
        wholes = [sum(span.duration_ns for span in evaluated if span.repetition == each) for each in repetitions]
        yield (RowKind.WHOLE_RUN, ""), round(median(wholes))
    if evaluations_of(record):
        yield from _operator_samples(replicate_samples(record))


def _operator_samples(samples: ReplicateSamples) -> Iterator[tuple[tuple[RowKind, str], int]]:
    for phase, roles in samples.operator_ns.items():
        for role, sample_ns in roles.items():
            yield (RowKind.OPERATOR, f"{phase.value}/{role}"), sample_ns


def _rows(point: SweepPoint, works: Mapping[tuple[RowKind, str], Work], processes: Sequence[_Sampled]) -> Iterator[Row]:
    """Join the work of each row with its samples; an operator without FLOPs or bytes has no place on a roofline."""
    subject = subject_of(point.workload, point.n_threads)
    for (kind, role), work in works.items():
        samples_ns = tuple(each.samples_ns[kind, role] for each in processes if (kind, role) in each.samples_ns)
        if samples_ns and min(samples_ns) > 0 and work.flops and work.least_traffic_bytes:
            yield Row(
                sweep=point.sweep,
                setting=point.setting,
                value=point.value,
                kind=kind,
                role=role,
                subject=subject,
                work=work,
                samples_ns=samples_ns,
            )
