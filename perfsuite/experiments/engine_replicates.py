"""Measures the engine once for all phase and operator cases of a run."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from perfsuite.expectation.cases import recorded_operator_cases
from perfsuite.expectation.llama_workload import N_UBATCH, LlamaWorkload
from perfsuite.experiments.engine_graph import graph_differences
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupSamples, case_samples, collect_replicates
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.watching import DEVICE_SAMPLES
from perfsuite.measure.llama_plan import kept_outputs, llama_plan, with_drawn_layout, with_files
from perfsuite.measure.plan import LlamaPlan, forecast_limit_s
from perfsuite.measure.schedule import Payload, waiting_complaint
from perfsuite.records.case import REST_ROLE, Case
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import GRAPH_PHASES, PROMPT_PHASES, EngineRecord, Phase
from perfsuite.trace.observation import EngineObserver
from perfsuite.trace.operators import timed_operators
from perfsuite.trace.samples import ReplicateSamples, misaligned_evaluations, replicate_samples


def joules_by_phase(payloads: Sequence[Mapping[str, Any]], records: Sequence[EngineRecord]) -> dict[str, float | None]:
    """Return, by phase, the energy of a token in the middle replicate, J.

    None where the phase is too short for the sensor; nothing at all where the board has none. A phase is what lies
    between its first and its last moment in a repetition, what the driver does between tokens included.
    """
    from perfsuite.device.stability.sampler import (
        Sample,
        joules_per_token,  # only whoever measures needs the sensors
    )

    found: dict[str, list[float | None]] = defaultdict(list)
    for payload, record in zip(payloads, records, strict=True):
        samples = [Sample(**each) for each in payload.get(DEVICE_SAMPLES, ())]
        if not any(each.power_watts is not None or each.counted_joules is not None for each in samples):
            continue
        for phase in GRAPH_PHASES:
            intervals, n_tokens = _intervals(record, phase)
            if intervals:
                found[phase.value].append(joules_per_token(samples, intervals, n_tokens))
    return {phase: _middle(energies) for phase, energies in found.items()}


def _intervals(record: EngineRecord, phase: Phase) -> tuple[list[tuple[int, int]], int]:
    """Return from when to when each repetition was in the phase, and the tokens of all of them."""
    spans = [span for span in record.spans if span.phase is phase]
    repetitions = dict.fromkeys(span.repetition for span in spans)
    by_repetition = [[span for span in spans if span.repetition == each] for each in repetitions]
    intervals = [(min(s.start_ns for s in each), max(s.end_ns for s in each)) for each in by_repetition]
    return intervals, sum(span.n_tokens for span in spans)


def _middle(energies: Sequence[float | None]) -> float | None:
    known = [each for each in energies if each is not None]
    return median(known) if known else None


#: Why no sample can be trusted, by phase and role.
GraphProblems = dict[tuple[Phase | None, str | None], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedGraphs:
    """What recorded graphs are worth, by phase and role."""

    problems: GraphProblems = field(default_factory=dict)
    #: Operators that this engine computes otherwise than the analytical graph: one of them, in a line.
    otherwise: Mapping[tuple[Phase | None, str | None], str] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say which operators have no forecast."""
        if not self.otherwise:
            return ()
        roles = tuple(dict.fromkeys(role for _, role in self.otherwise))
        first = next(iter(self.otherwise.values()))
        has = "has" if len(roles) == 1 else "have"
        return (f"{', '.join(map(str, roles))}: computed otherwise than expected, and {has} no forecast; {first}",)


#: A single short prefill is a poor sample, so short scenarios are repeated within a process.
REPETITIONS = 3


def measure_llama(
    config: RunConfig, cases: Sequence[Case], progress: ProgressLine, *, forecast_s: float | None = None
) -> GroupSamples:
    """Run the engine in `n_replicates` fresh processes; those that had competition are repeated up to once each.

    `forecast_s` is what the scenario is forecast to take, once.
    """
    workload = config.workload
    plan = run_plan(config, REPETITIONS if workload.scenario.n_ctx <= 256 else 1)
    order = random.Random()
    limit_s = forecast_limit_s(forecast_s and forecast_s * (plan.n_repetitions + 1))  # with the warm-up

    def run() -> Payload:
        return config.board.run(with_drawn_layout(plan, order), limit_s=limit_s)

    replicates = collect_replicates(config, run, waiting_complaint, "llama.cpp", progress, group="llama")
    shown = [EngineRecord.from_plain(payload.get("engine")) for payload in replicates.shown_payloads]
    records = shown[: len(replicates.payloads)]
    version = shown[0].engine_version if shown else "unknown"
    observer = EngineObserver(n_prompt=workload.scenario.n_prompt)
    for record in records:
        observer.add(record)
    figures = [replicate_samples(record) for record in shown]
    reduced = figures[: len(records)]
    checked = check_graphs(config, records)
    found = found_operators(config, cases, reduced)
    return replace(
        replicates.group,
        samples={
            case.case_id: case_samples(
                case,
                (each.of_case(case) for each in figures),
                (*replicates.problems, *checked.problems.get((case.phase, case.role), ())),
            )
            for case in (*cases, *found)
        },
        fingerprint=llama_fingerprint(config, version),
        without_forecast=frozenset(checked.otherwise),
        notes=(*replicates.group.notes, *checked.notes),
        unclaimed=unclaimed_operators(config, cases, reduced),
        found={case.case_id: case for case in found},
        operator_share_ratio=operator_shares(reduced),
        joules_per_token=joules_by_phase(replicates.payloads, records),
        description=f"{version}, build {config.engine.build_id}",
        engine_version=version,
        outputs=kept_outputs(plan, records),
        observation=replace(observer.observation(), states=replicates.states),
    )


def llama_fingerprint(config: RunConfig, engine_version: str) -> dict[str, str]:
    """Return what a run of the engine is known by: what was asked for, what the machine is, and the engine's version.

    `perfsuite.device.fingerprint` says which field is which, and what each means for a baseline.
    """
    return {
        **config.board.facts().fingerprint,
        "engine": " ".join(engine_version.split()[:4]),
        "threads": str(config.n_threads),
        **graph_settings(config),
        **(config.opencl.fingerprint if config.opencl else {}),
    }


def graph_settings(config: RunConfig) -> dict[str, str]:
    """Return the part of the fingerprint that is known before anything runs and decides which operators there are."""
    model, backend = config.workload.weights.identity, config.backend
    return {"model": model, "backend": backend, **workload_settings(config.workload)}


def workload_settings(workload: LlamaWorkload) -> dict[str, str]:
    """Return what beside the model and the scenario decides what a workload does."""
    settings = workload.settings
    return {
        "flash_attn": "on" if settings.flash_attn else "off",
        "kv_types": f"{settings.type_k}/{settings.type_v}",
        **({} if workload.n_ubatch == N_UBATCH else {"n_ubatch": str(workload.n_ubatch)}),
        **_beside(workload),
    }


def _beside(workload: LlamaWorkload) -> dict[str, str]:
    """Name what runs beside a model alone; nothing where it does, so that its baselines stay what they were."""
    rank, drafting, projector = workload.settings.lora_rank, workload.drafting, workload.projector
    return {
        **({} if rank is None else {"lora_rank": str(rank)}),
        **({} if workload.n_sequences == 1 else {"n_sequences": str(workload.n_sequences)}),
        **({} if drafting is None else {"draft": drafting.identity}),
        **({} if projector is None else {"mmproj": projector.weights.identity}),
    }


def run_plan(config: RunConfig, n_repetitions: int = 1) -> LlamaPlan:
    """Return the plan of one process of a run; its model's file is there afterwards."""
    plan = llama_plan(
        config.workload,
        config.engine,
        gguf_path=config.board.place_weights(config.workload.weights),
        cache_dir=config.board.facts().cache_dir,
        n_threads=config.n_threads,
        opencl=config.opencl,
        n_repetitions=1 if config.prompt_lengths else n_repetitions,
        prompt_lengths=config.prompt_lengths,
    )
    return replace(
        with_files(plan, config.workload, config.board, config.cache_dir / "models"),
        inject_op=config.inject_op,
        inject_ratio=config.inject_ratio,
        inject_phases=config.inject_phases,
        inject_phase_ratio=config.inject_ratio,
    )


def check_graphs(config: RunConfig, records: Sequence[EngineRecord]) -> CheckedGraphs:
    """Hold the recorded graph against the analytical one, and see whether the recording can be trusted."""
    if not records or config.backend != "cpu":
        return CheckedGraphs()
    if lost := lost_events(records):
        return CheckedGraphs(problems={(phase, role): (lost,) for phase in Phase for role in _all_roles(records)})
    problems: GraphProblems = {}
    otherwise: dict[tuple[Phase | None, str | None], str] = {}
    for phase in config.workload.known_phases:
        recorded = recorded_graph(records[0], phase, config.workload)
        for each in graph_differences(config.workload.graph(phase), recorded):
            if each.is_other_work:
                problems.setdefault((phase, each.role), (f"the graph is not as expected: {each.text}",))
            else:
                otherwise.setdefault((phase, each.role), each.text)
    return CheckedGraphs(problems=problems, otherwise=otherwise)


def lost_events(records: Iterable[EngineRecord]) -> str | None:
    """Say why recordings cannot be trusted, where they cannot."""
    misaligned, dropped = 0, 0
    for record in records:
        misaligned, dropped = misaligned + misaligned_evaluations(record), dropped + record.n_dropped
    if not misaligned and not dropped:
        return None
    return f"the recorder lost events ({misaligned} evaluations incomplete, {dropped} events dropped)"


def recorded_graph(record: EngineRecord, phase: Phase, workload: LlamaWorkload) -> list[Any]:
    """Return the timed operators of the first prompt of the scenario's length, or of the decode step in its middle."""
    n_prompt = workload.scenario.n_prompt
    prompts = [span for span in record.spans if span.phase in PROMPT_PHASES and span.n_tokens == n_prompt]
    repetition = prompts[0].repetition if prompts else 0
    spans = [span for span in record.spans if span.phase is phase and span.repetition == repetition]
    begun = [span for span in spans if span.token <= workload.middle_place]
    span = (begun or spans)[-1] if phase is Phase.DECODE else spans[0]
    evaluations = evaluations_of(record)
    graphs = [record.graphs[evaluations.graph[each]] for each in evaluations.within(span.start_ns, span.end_ns)]
    return [operator for graph in graphs for operator in timed_operators(graph)]


def _all_roles(records: Sequence[EngineRecord]) -> set[str]:
    roles = {operator.role for record in records for graph in record.graphs for operator in timed_operators(graph)}
    return roles | {REST_ROLE}


def unclaimed_operators(
    config: RunConfig, cases: Sequence[Case], reduced: Sequence[ReplicateSamples]
) -> dict[str, str]:
    """Name what was recorded and no operator case claims, of the phases whose operators are enumerated."""
    reason = "recorded, and no case claims it: the expectation does not know this operator"
    found = {case.case_id for case in found_operators(config, cases, reduced)}
    return {case_id: reason for case_id in _without_case(config, cases, reduced) if case_id not in found}


def found_operators(config: RunConfig, cases: Sequence[Case], reduced: Sequence[ReplicateSamples]) -> tuple[Case, ...]:
    """Return cases of what was recorded of a graph that is not known, as the engine names it."""
    return tuple(recorded_operator_cases(config.workload, _without_case(config, cases, reduced)))


def _without_case(config: RunConfig, cases: Sequence[Case], reduced: Sequence[ReplicateSamples]) -> tuple[str, ...]:
    """Return the ids of the recorded operators, and of the rest of each phase, that no case has."""
    claimed = {case.case_id for case in cases}
    recorded = (
        f"operator/{config.workload.prefix}/{phase.value}/{role}"
        for replicate in reduced
        for phase, roles in replicate.operator_ns.items()
        for role in (*roles, REST_ROLE)
    )
    return tuple(dict.fromkeys(case_id for case_id in recorded if case_id not in claimed))


def operator_shares(reduced: Sequence[ReplicateSamples]) -> dict[str, float]:
    """Return, by phase, the share of it that its operators account for."""
    shares: dict[str, list[float]] = defaultdict(list)
    for replicate in reduced:
        for phase, roles in replicate.operator_ns.items():
            operators_ns = sum(roles.values())
            shares[phase.value].append(operators_ns / max(1, operators_ns + replicate.rest_ns[phase]))
    return {phase: median(found) for phase, found in shares.items()}
