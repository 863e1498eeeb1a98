"""Measures the engine once for all phase and operator cases of a run."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from perfsuite.device.stability.sampler import Sample, joules_per_token
from perfsuite.expectation.cases import recorded_operator_cases
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.experiments.engine_graph import graph_differences
from perfsuite.experiments.engine_runs import llama_fingerprint, lost_events, run_plan
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import collect_replicates, known_median
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples, case_samples
from perfsuite.measure.board.watching import DEVICE_SAMPLES
from perfsuite.measure.llama_plan import kept_outputs, with_drawn_layout
from perfsuite.measure.plan import forecast_limit_s
from perfsuite.measure.schedule import Payload, waiting_complaint
from perfsuite.records.case import REST_ROLE, Case
from perfsuite.records.engine_columns import evaluations_of
from perfsuite.records.events import GRAPH_PHASES, PROMPT_PHASES, EngineRecord, Phase
from perfsuite.trace.observation import EngineObserver
from perfsuite.trace.operators import timed_operators
from perfsuite.trace.samples import ReplicateSamples, replicate_samples


def joules_by_phase(payloads: Sequence[Mapping[str, Any]], records: Sequence[EngineRecord]) -> dict[str, float | None]:
    """Return, by phase, the energy of a token in the middle replicate, J.

    None where the phase is too short for the sensor; nothing at all where the board has none. A phase is what lies
    between its first and its last moment in a repetition, what the driver does between tokens included.
    """
    found: dict[str, list[float | None]] = defaultdict(list)
    for payload, record in zip(payloads, records, strict=True):
        samples = [Sample(**each) for each in payload.get(DEVICE_SAMPLES, ())]
        if not any(each.power_watts is not None or each.counted_joules is not None for each in samples):
            continue
        for phase in GRAPH_PHASES:
            intervals, n_tokens = _intervals(record, phase)
            if intervals:
                found[phase.value].append(joules_per_token(samples, intervals, n_tokens))
    return {phase: known_median(energies) for phase, energies in found.items()}


def _intervals(record: EngineRecord, phase: Phase) -> tuple[list[tuple[int, int]], int]:
    """Return from when to when each repetition was in the phase, and the tokens of all of them."""
    spans = [span for span in record.spans if span.phase is phase]
    repetitions = dict.fromkeys(span.repetition for span in spans)
    by_repetition = [[span for span in spans if span.repetition == each] for each in repetitions]
    intervals = [(min(s.start_ns for s in each), max(s.end_ns for s in each)) for each in by_repetition]
    return intervals, sum(span.n_tokens for span in spans)


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
    found, unclaimed = operators_beside(config, cases, reduced)
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
        unclaimed=unclaimed,
        found={case.case_id: case for case in found},
        operator_share_ratio=operator_shares(reduced),
        joules_per_token=joules_by_phase(replicates.payloads, records),
        description=f"{version}, build {config.engine.build_id}",
        engine_version=version,
        outputs=kept_outputs(plan, records),
        observation=replace(observer.observation(), states=replicates.group.observation.states),
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


def operators_beside(
    config: RunConfig, cases: Sequence[Case], reduced: Sequence[ReplicateSamples]
) -> tuple[tuple[Case, ...], dict[str, str]]:
    """Return what was recorded, the rest of each phase included, and is of no case.

    Of a graph that is not known these are cases, as the engine names them; of another one, ids with what is wrong.
    """
    claimed = {case.case_id for case in cases}
    recorded = (
        f"operator/{config.workload.prefix}/{phase.value}/{role}"
        for replicate in reduced
        for phase, roles in replicate.operator_ns.items()
        for role in (*roles, REST_ROLE)
    )
    beside = tuple(dict.fromkeys(case_id for case_id in recorded if case_id not in claimed))
    found = tuple(recorded_operator_cases(config.workload, beside))
    unknown = dict.fromkeys(beside, "recorded, and no case claims it: the expectation does not know this operator")
    return found, {case_id: why for case_id, why in unknown.items() if case_id not in {each.case_id for each in found}}


def operator_shares(reduced: Sequence[ReplicateSamples]) -> dict[str, float]:
    """Return, by phase, the share of it that its operators account for."""
    shares: dict[str, list[float]] = defaultdict(list)
    for replicate in reduced:
        for phase, roles in replicate.operator_ns.items():
            operators_ns = sum(roles.values())
            shares[phase.value].append(operators_ns / max(1, operators_ns + replicate.rest_ns[phase]))
    return {phase: median(found) for phase, found in shares.items()}
