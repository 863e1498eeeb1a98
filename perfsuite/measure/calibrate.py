"""Runs a calibration: rounds of single operators, and the compositions among them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from statistics import median
from typing import Any

from perfsuite.device.profile import Profile
from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.timing.calibration import Calibration, CalibrationPoint, Composition, TokenPhase
from perfsuite.expectation.timing.calibration_plan import MANY_ROWS, CalibrationPlan
from perfsuite.expectation.timing.engine_times import phase_nodes
from perfsuite.expectation.timing.operator_shape import OperatorShape
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import binds_threads, llama_plan, with_drawn_layout
from perfsuite.measure.plan import OperatorsPlan, Plan
from perfsuite.measure.schedule import Rule, run_undisturbed
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import TOKEN_PHASES, EngineRecord, Phase

#: What the parameters of operators of many rows are spread over.
_SPREAD_BYTES_OF_MANY = 96 << 20

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRun:
    """What a calibration is run with."""

    #: The device, which is open.
    board: Board
    #: A llama.cpp there.
    engine: Engine
    #: Says what counts as a disturbance.
    profile: Profile
    n_threads: int
    plan: CalibrationPlan
    seed: int = 0


def calibrate(run: CalibrationRun, progress: Progress) -> Calibration:
    """Measure every operator of the plan in each round, and every composition in as many processes as the plan says.

    Raises `MeasurementError` where a worker failed, ran past its limit, or was disturbed each time that it was tried;
    `EngineError` where the engine cannot compute one of the operators.
    """
    plan = run.plan
    order = random.Random(run.seed)
    operator_rounds: list[dict[OperatorShape, float]] = []
    composed: list[list[EngineRecord]] = [[] for _ in plan.compositions]
    version = ""
    for at in range(plan.n_rounds):
        progress(f"round {at + 1} of {plan.n_rounds}: {len(plan.shapes)} operators")
        operator_rounds.append(_operator_round(run, order))
        for records, workload in [*zip(composed, plan.compositions, strict=True)] * plan.n_processes:
            progress(f"round {at + 1} of {plan.n_rounds}: {workload.weights.name}")
            records.append(_composition_record(run, workload, order))
            version = records[-1].engine_version
    return Calibration(
        n_threads=run.n_threads,
        engine=f"{version}, build {run.engine.build_id}",
        recorded_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        fingerprint=dict(run.board.facts().fingerprint),
        points=tuple(
            CalibrationPoint(shape=shape, rounds_ns=tuple(times[shape] for times in operator_rounds))
            for shape in plan.shapes
        ),
        compositions=tuple(
            _composition(workload, phase, records)
            for workload, records in zip(plan.compositions, composed, strict=True)
            for phase in (Phase.PREFILL, Phase.DECODE)
        ),
        token_phases=tuple(
            _token_phase(workload, phase, records)
            for workload, records in zip(plan.compositions, composed, strict=True)
            for phase in TOKEN_PHASES
        ),
        spread_bytes=plan.spread_bytes,
        is_quick=plan.is_quick,
    )


def _operator_round(run: CalibrationRun, order: random.Random) -> dict[OperatorShape, float]:
    """Measure all operators once: those of few rows, whose parameters come from memory, apart from the others."""
    times: dict[OperatorShape, float] = {}
    few = [shape for shape in run.plan.shapes if shape.n_tokens < MANY_ROWS]
    many = [shape for shape in run.plan.shapes if shape.n_tokens >= MANY_ROWS]
    for shapes, spread_bytes in ((few, run.plan.spread_bytes), (many, _SPREAD_BYTES_OF_MANY)):
        if not shapes:
            continue
        order.shuffle(shapes)
        plan = OperatorsPlan(
            library_dir=str(run.engine.library_dir),
            engine_build_id=run.engine.build_id,
            cache_dir=str(run.board.facts().cache_dir),
            n_threads=run.n_threads,
            shapes=tuple(shapes),
            budget_ns=run.plan.budget_ns,
            spread_bytes=spread_bytes,
            binds_threads=binds_threads(run.engine),
        )
        times |= zip(shapes, _undisturbed(run, plan)["times_ns"], strict=True)
    return times


def _composition_record(run: CalibrationRun, workload: LlamaWorkload, order: random.Random) -> EngineRecord:
    plan = llama_plan(
        workload,
        run.engine,
        gguf_path=run.board.place_weights(workload.weights),
        cache_dir=run.board.facts().cache_dir,
        n_threads=run.n_threads,
        n_repetitions=run.plan.n_repetitions,
    )
    payload = _undisturbed(run, with_drawn_layout(plan, order))
    return EngineRecord.from_plain(payload.get("engine"))


def _undisturbed(run: CalibrationRun, plan: Plan) -> dict[str, Any]:
    return run_undisturbed(run.board, plan, Rule(profile=run.profile), n_tries=run.plan.n_tries)


def _composition(workload: LlamaWorkload, phase: Phase, records: Sequence[EngineRecord]) -> Composition:
    nodes = phase_nodes(workload, phase)
    counts = Counter(shape for shape in nodes if shape is not None)
    rounds = [_shapes_and_rest_ns(record, phase, nodes) for record in records]
    return Composition(
        name=workload.weights.name,
        phase=phase.value,
        shapes=tuple(counts),
        counts=tuple(counts.values()),
        shapes_ns=tuple(tuple(shapes_ns[shape] for shapes_ns, _ in rounds) for shape in counts),
        rest_ns=tuple(rest_ns for _, rest_ns in rounds),
    )


def _token_phase(workload: LlamaWorkload, phase: Phase, records: Sequence[EngineRecord]) -> TokenPhase:
    return TokenPhase(
        name=workload.weights.name,
        phase=phase.value,
        n_vocab=workload.weights.shape.n_vocab,
        rounds_ns=tuple(
            float(median(span.duration_ns for span in record.spans if span.phase is phase)) for record in records
        ),
    )


def _shapes_and_rest_ns(
    record: EngineRecord, phase: Phase, nodes: Sequence[OperatorShape | None]
) -> tuple[dict[OperatorShape, float], float]:
    """Split a phase into the time of each shape and what is beside, in the median over its occurrences, ns.

    What has no rows is beside. Operators follow each other without a gap, so one lasts from the end of the one before
    it to its own end.
    """
    by_shape: dict[OperatorShape, list[int]] = {shape: [] for shape in nodes if shape is not None}
    rest: list[int] = []
    evaluations = evaluations_of(record)
    durations_ns = evaluations.ends_ns - evaluations.starts_ns
    for span in (span for span in record.spans if span.phase is phase):
        within = evaluations.within(span.start_ns, span.end_ns)
        durations = [time_ns for each in within for time_ns in durations_ns[evaluations.ends(each)].tolist()]
        if len(durations) != len(nodes):
            raise MeasurementError(
                f"calibration: {phase.value} computed {len(durations)} operators, expected {len(nodes)}; "
                "this llama.cpp has another graph than the expectation"
            )
        spent = dict.fromkeys(by_shape, 0)
        for shape, duration in zip(nodes, durations, strict=True):
            if shape is not None:
                spent[shape] += duration
        for shape, time_ns in spent.items():
            by_shape[shape].append(time_ns)
        rest.append(span.duration_ns - sum(spent.values()))
    return {shape: max(1.0, float(median(times))) for shape, times in by_shape.items()}, float(median(rest))
