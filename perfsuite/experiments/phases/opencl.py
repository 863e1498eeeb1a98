"""Measures the engine on its OpenCL backend once for all phase, operator and kernel cases of a run."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import median
from typing import Any

from perfsuite.experiments.engine_runs import llama_fingerprint, run_plan
from perfsuite.experiments.learnt_mapping import learnt_mapping
from perfsuite.experiments.phases.replicates import REPETITIONS, operator_shares, operators_beside
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.recorder_traces import TracedRun, traced_run
from perfsuite.experiments.replicates import collect_replicates
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples, case_samples
from perfsuite.measure.llama_plan import kept_outputs, with_drawn_layout
from perfsuite.measure.plan import LlamaPlan
from perfsuite.measure.schedule import others_complaint
from perfsuite.records.case import ENGINE_KERNEL, REST_ROLE, Case
from perfsuite.records.events import KeptOutputs, Phase
from perfsuite.records.outcome import CaseSamples
from perfsuite.trace.observation import step_latencies, token_latencies
from perfsuite.trace.opencl.device_clock import align
from perfsuite.trace.opencl.kernel_mapping import KernelMapping
from perfsuite.trace.opencl.kernel_samples import MappedRun, map_run
from perfsuite.trace.samples import ReplicateSamples, reduce_phases
from perfsuite.units import format_count

#: Where a payload keeps what its trace was reduced to: a trace is too large to keep one of each process.
_REDUCED = "reduced"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replicate:
    """What one process says."""

    engine_version: str
    samples: ReplicateSamples
    outputs: tuple[KeptOutputs, ...]
    #: By phase and kernel, ns an occurrence.
    kernel_ns: Mapping[tuple[Phase, str], int]
    #: By tokens in the context, ns a decode step.
    steps_ns: Mapping[int, int]
    #: Why no operator and no kernel can be trusted, and why one of them cannot, by phase and name.
    problems: tuple[str, ...]
    operator_problems: Mapping[tuple[Phase, str], str]
    kernel_problems: Mapping[tuple[Phase, str], str]
    error_ratio: Mapping[tuple[Phase, str], float]
    notes: tuple[str, ...]


def open_mapping(config: RunConfig) -> KernelMapping:
    """Return which kernel computes which operator of the run's workload, learning it where that was never done.

    Raises MeasurementError: a run failed, or its kernels cannot be told apart.
    """
    assert config.opencl is not None
    return learnt_mapping(
        run_plan(config),
        config.opencl,
        config.board,
        model=config.workload.weights.identity,
        cache_dir=config.cache_dir,
        announce=lambda text: print(f"perfsuite: {text}", flush=True),  # pytest has not begun to report
    )


def measure_opencl(
    config: RunConfig, cases: Sequence[Case], mapping: KernelMapping, progress: ProgressLine
) -> GroupSamples:
    """Run the engine under the tracing layer in `n_replicates` fresh processes."""
    assert config.opencl is not None
    opencl = config.opencl
    plan = run_plan(config, REPETITIONS if config.workload.scenario.n_ctx <= 256 else 1)
    order = random.Random()

    def run() -> dict[str, Any]:
        traced = traced_run(with_drawn_layout(plan, order), opencl, config.board)
        return {**traced.payload, _REDUCED: _reduced(plan, traced, mapping)}

    replicates = collect_replicates(config, run, others_complaint, "llama.cpp on OpenCL", progress, group="llama")
    figures: list[_Replicate] = [payload[_REDUCED] for payload in replicates.shown_payloads]
    reduced = figures[: len(replicates.payloads)]
    version = figures[0].engine_version if figures else "unknown"
    samples = [each.samples for each in reduced]
    found, unclaimed = operators_beside(config, cases, samples)
    return replace(
        replicates.group,
        samples={
            case.case_id: _case_samples(case, figures, (*replicates.problems, *_own_problems(case, reduced)))
            for case in (*cases, *found)
        },
        fingerprint=llama_fingerprint(config, version),
        unclaimed=unclaimed,
        found={case.case_id: case for case in found},
        operator_share_ratio=operator_shares(samples),
        description=f"{version}, build {config.engine.build_id}, on {opencl.device}",
        notes=(*replicates.group.notes, *_notes(reduced)),
        outputs=tuple(chain.from_iterable(each.outputs for each in reduced)),
        observation=replace(replicates.group.observation, tokens=token_latencies([each.steps_ns for each in reduced])),
    )


def _reduced(plan: LlamaPlan, traced: TracedRun, mapping: KernelMapping) -> _Replicate:
    record = traced.run.record
    mapped = map_run(record, align(traced.run.trace), mapping)
    phases = {phase: tuple(each.traced for each in found) for phase, found in mapped.phases.items()}
    return _Replicate(
        engine_version=record.engine_version,
        samples=reduce_phases(record, phases),
        outputs=kept_outputs(plan, [record]),
        kernel_ns=dict(_kernel_times(mapped)),
        steps_ns=step_latencies(record),
        problems=mapped.problems,
        operator_problems=mapped.operator_problems,
        kernel_problems=mapped.kernel_problems,
        error_ratio=mapped.error_ratio,
        notes=mapped.notes,
    )


def _kernel_times(mapped: MappedRun) -> Iterator[tuple[tuple[Phase, str], int]]:
    for phase, occurrences in mapped.phases.items():
        found: dict[str, list[int]] = defaultdict(list)
        for kernel, spent_ns in chain.from_iterable(each.kernel_ns.items() for each in occurrences):
            found[kernel].append(spent_ns)
        yield from (((phase, kernel), round(median(times))) for kernel, times in found.items())


def _case_samples(case: Case, figures: Sequence[_Replicate], problems: tuple[str, ...]) -> CaseSamples:
    if case.kind != ENGINE_KERNEL or case.phase is None:
        return case_samples(case, (each.samples.of_case(case) for each in figures), problems)
    key = case.phase, case.role or ""
    samples = case_samples(case, (each.kernel_ns.get(key) for each in figures), problems)
    return replace(samples, error_ratio=max((each.error_ratio.get(key, 0.0) for each in figures), default=0.0))


def _own_problems(case: Case, reduced: Sequence[_Replicate]) -> tuple[str, ...]:
    """Return why a case cannot be trusted; a phase always can, for its clock is the host's."""
    if case.kind == "phase" or case.phase is None:
        return ()
    of_run = (each for one in reduced for each in one.problems)
    return tuple(dict.fromkeys((*of_run, *(each for one in reduced for each in _named_problems(case, one)))))


def _named_problems(case: Case, replicate: _Replicate) -> Iterator[str]:
    assert case.phase is not None
    named = replicate.kernel_problems if case.kind == ENGINE_KERNEL else replicate.operator_problems
    if (case.phase, case.role or "") in named:
        yield named[case.phase, case.role or ""]
    if case.role == REST_ROLE:
        unknown = sorted(role for phase, role in replicate.operator_problems if phase is case.phase)
        if unknown:
            yield f"what is not the rest is not known of {format_count(len(unknown), 'operator')}: {', '.join(unknown)}"


def _notes(reduced: Sequence[_Replicate]) -> Iterator[str]:
    """Yield what is odd about the driver's times in the first replicate that tells of it, and how many do."""
    told = [each.notes for each in reduced if each.notes]
    if told:
        replicates = f"{len(told)} of {format_count(len(reduced), 'replicate')}"
        yield from (f"{note} (so or alike in {replicates})" for note in told[0])
