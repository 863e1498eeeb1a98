"""Measures the workloads of sweeps in turns, so that a slow minute is shared by all of them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.expectation.roofline.roofline_run import Row, RowKind, subject_of
from perfsuite.expectation.roofline.row_works import PHASE_KINDS, row_works
from perfsuite.expectation.roofline.sweeps import SweepPoint
from perfsuite.expectation.roofline.work import Work
from perfsuite.measure.contention import Contention
from perfsuite.measure.engine import Engine
from perfsuite.measure.launch import run_worker
from perfsuite.measure.llama_plan import llama_plan, with_drawn_layout
from perfsuite.measure.memory_timeline import measure_memory
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.undisturbed import waiting_complaint
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import EngineRecord
from perfsuite.trace.samples import ReplicateSamples, replicate_samples
from perfsuite.workload.weights import materialize

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
    cache_dir: Path
    n_processes: int = N_PROCESSES
    #: Whether operators are rows of their own.
    records_operators: bool = False


@dataclass
class _Taken:
    """What the processes of one workload have said so far."""

    point: SweepPoint
    #: By kind of row and role, as are the samples.
    works: Mapping[tuple[RowKind, str], Work]
    plan: LlamaPlan
    samples_ns: dict[tuple[RowKind, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    n_valid: int = 0
    complaint: str = ""


def measure_rows(
    points: Sequence[SweepPoint], bench: Bench, progress: Callable[[str], None]
) -> tuple[tuple[Row, ...], str]:
    """Measure each workload in `n_processes` fresh processes; return the rows and the engine's version.

    Rounds go through all workloads in an order drawn anew. A process that had competition is not counted, and as many
    more rounds are run for what is missing.

    Raises
    ------
    MeasurementError
        A workload had fewer than `MIN_PROCESSES` undisturbed processes, or its graph is not known; or a worker failed.
    ArchitectureError
        The engine refuses the settings for an architecture; nothing was run then.
    """
    order = random.Random()
    # All works come first: what the engine would refuse is told before anything is written or run.
    counted = [row_works(point.workload) for point in points]
    taken = [
        _Taken(point=point, works=found, plan=_plan(point, bench)) for point, found in zip(points, counted, strict=True)
    ]
    version = ""
    for turn in range(2 * bench.n_processes):
        waiting = [each for each in taken if each.n_valid < bench.n_processes]
        order.shuffle(waiting)
        for place, each in enumerate(waiting):
            progress(f"round {turn + 1}, workload {place + 1} of {len(waiting)}: {each.point.setting}")
            version = _take(each, bench, order) or version
    n_needed = min(MIN_PROCESSES, bench.n_processes)
    for each in taken:
        if each.n_valid < n_needed:
            raise MeasurementError(
                f"sweep {each.point.sweep}, {each.point.setting}: {each.n_valid} undisturbed processes of "
                f"{2 * bench.n_processes}, needed are {n_needed}; {each.complaint}; run it when nothing else runs"
            )
    return tuple(row for each in taken for row in _rows(each)), version


def measure_memories(
    points: Sequence[SweepPoint], bench: Bench, progress: Callable[[str], None]
) -> tuple[MemoryRecord, ...]:
    """Run one process more of each workload, whose memory is sampled and whose times are not used.

    Raises
    ------
    MeasurementError
        A worker failed, or the engine cannot be asked what its processor has.
    """
    records = []
    for place, point in enumerate(points):
        progress(f"memory, workload {place + 1} of {len(points)}: {point.setting}")
        records.append(measure_memory(point.workload, replace(_plan(point, bench), recorder="none", n_repetitions=1)))
    return tuple(records)


def _plan(point: SweepPoint, bench: Bench) -> LlamaPlan:
    workload = point.workload
    if not workload.has_known_graph:
        raise MeasurementError(
            f"{workload.weights.name}: the graph of {workload.weights.architecture.gguf_architecture!r} is not known, "
            "so that its work cannot be counted"
        )
    plan = llama_plan(
        workload,
        bench.engine,
        gguf_path=materialize(workload.weights, cache_dir=bench.cache_dir / "models"),
        cache_dir=bench.cache_dir,
        n_threads=point.n_threads,
        n_repetitions=_REPETITIONS if workload.scenario.n_ctx <= _SHORT_TOKENS else 1,
    )
    return plan if bench.records_operators else replace(plan, recorder="none")


def _take(taken: _Taken, bench: Bench, order: random.Random) -> str:
    """Run one process and keep its samples if it had the processors for itself; return the engine's version."""
    payload = run_worker(with_drawn_layout(taken.plan, order))
    complaint = waiting_complaint(Contention.from_plain(payload["contention"]), bench.profile)
    if complaint is not None:
        taken.complaint = complaint
        return ""
    record = EngineRecord.from_plain(payload["engine"])
    taken.n_valid += 1
    for key, sample_ns in _samples(record):
        taken.samples_ns[key].append(sample_ns)
    return record.engine_version


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


def _rows(taken: _Taken) -> Iterator[Row]:
    """Join the work of each row with its samples; an operator without FLOPs or bytes has no place on a roofline."""
    point = taken.point
    subject = subject_of(point.workload, point.n_threads)
    for (kind, role), work in taken.works.items():
        samples_ns = tuple(taken.samples_ns.get((kind, role), ()))
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
