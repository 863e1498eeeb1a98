"""Measures a group of cases once, in fresh processes, and reduces what comes back to samples for each case."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from perfsuite.device.fingerprint import host_fingerprint
from perfsuite.errors import EngineError, PerfsuiteError
from perfsuite.expectation.cases import REST_ROLE, Case
from perfsuite.expectation.ceilings import Ceilings
from perfsuite.measure.contention import Contention
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.kernel_runtime import opencl_environment
from perfsuite.measure.launch import environment_opencl_vendors, run_worker
from perfsuite.measure.plan import DevicesPlan, KernelPlan, LlamaPlan, ProbePlan
from perfsuite.plugin.options import RunConfig
from perfsuite.plugin.progress import ProgressLine
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.samples import CaseSamples
from perfsuite.trace.operators import timed_operators
from perfsuite.trace.samples import ReplicateSamples, misaligned_evaluations, replicate_samples
from perfsuite.verdict.compare import MIN_SAMPLES
from perfsuite.verdict.fidelity import graph_differences
from perfsuite.workload.weights import materialize

_PROBE_BUDGET_MS = 2500
_KERNEL_REPETITIONS = 20
_PREFILL_REPETITIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSamples:
    """What measuring a group gave."""

    samples: Mapping[str, CaseSamples]
    fingerprint: Mapping[str, str]
    #: Case ids that the record holds and no case claims, with the reason.
    unclaimed: Mapping[str, str] = field(default_factory=dict)
    peak_rss_bytes: int | None = None
    #: Replicates that were measured under contention and left out.
    n_discarded: int = 0
    #: By phase: the share of it that its operators account for.
    operator_share_ratio: Mapping[str, float] = field(default_factory=dict)
    #: What is run, in words for the header of a report.
    description: str = ""


def measure_probes(config: RunConfig) -> Ceilings:
    """Measure the device's ceilings once, in a fresh process."""
    plan = ProbePlan(cache_dir=str(config.cache_dir), n_threads=config.n_threads, budget_ms=_PROBE_BUDGET_MS)
    return Ceilings.from_plain(run_worker(plan)["ceilings"])


def llama_fingerprint(config: RunConfig, engine_version: str) -> dict[str, str]:
    """Return what must be equal for two runs of the engine to be comparable.

    The engine counts by its released version, not by its commit or build: a changed build of the same version is just
    what a baseline is there to judge.
    """
    settings = config.workload.settings
    return {
        **host_fingerprint(),
        "engine": " ".join(engine_version.split()[:4]),
        "model": config.workload.weights.identity,
        "threads": str(config.n_threads),
        "backend": config.backend,
        "flash_attn": "on" if settings.flash_attn else "off",
        "kv_types": f"{settings.type_k}/{settings.type_v}",
    }


def measure_llama(config: RunConfig, cases: Sequence[Case], progress: ProgressLine) -> GroupSamples:
    """Run the engine in `n_replicates` fresh processes; those that had competition are repeated up to once each."""
    workload = config.workload
    path = materialize(workload.weights, cache_dir=config.cache_dir / "models")
    plan = _llama_plan(config, path)
    environment = kernel_environment(config) if config.backend == "opencl" else {}
    payloads, complaint, n_discarded = _replicates(
        config, lambda: run_worker(plan, extra_environment=environment), waiting_complaint, "llama.cpp", progress
    )
    records = [EngineRecord.from_plain(payload["engine"]) for payload in payloads]
    version = records[0].engine_version if records else "unknown"
    problems = (complaint,) if complaint else ()
    reduced = [replicate_samples(record) for record in records]
    wrong = _graph_problems(config, records)
    samples = {case.case_id: _case_samples(case, reduced, (*problems, *wrong.get(_place(case), ()))) for case in cases}
    return GroupSamples(
        samples=samples,
        fingerprint=llama_fingerprint(config, version),
        unclaimed=_unclaimed(config, cases, reduced),
        peak_rss_bytes=max((payload["peak_rss_bytes"] for payload in payloads), default=None),
        n_discarded=n_discarded,
        operator_share_ratio=_operator_shares(reduced),
        description=f"{version}, build {config.engine.build_id}",
    )


def measure_kernels(config: RunConfig, cases: Sequence[Case], progress: ProgressLine) -> GroupSamples:
    """Run the OpenCL kernels in `n_replicates` fresh processes."""
    environment = kernel_environment(config)
    device = run_worker(DevicesPlan(platform=_platform(config)), extra_environment=environment)["chosen"]
    plan = KernelPlan(
        case_ids=tuple(case.case_id for case in cases),
        platform=_platform(config),
        n_repetitions=_KERNEL_REPETITIONS,
        seed=0,
        log_dir=str(config.run_dir),
    )
    try:
        payloads, complaint, n_discarded = _replicates(
            config,
            lambda: run_worker(plan, extra_environment=environment),
            others_complaint,
            "OpenCL kernels",
            progress,
        )
    except PerfsuiteError as error:
        raise EngineError(str(error)) from error
    records = [[KernelRecord.from_plain(plain) for plain in payload["kernels"]] for payload in payloads]
    by_case: dict[str, list[KernelRecord]] = defaultdict(list)
    for replicate in records:
        for record in replicate:
            by_case[record.case_id].append(record)
    problems = (complaint,) if complaint else ()
    return GroupSamples(
        samples={case.case_id: _kernel_samples(case, by_case[case.case_id], problems) for case in cases},
        fingerprint={
            **host_fingerprint(),
            "opencl_platform": f"{device['platform_name']}, {device['platform_version']}",
            "opencl_device": device["device_name"],
            "opencl_driver": device["driver_version"],
        },
        peak_rss_bytes=max((payload["peak_rss_bytes"] for payload in payloads), default=None),
        n_discarded=n_discarded,
        description=f"{device['device_name']} ({device['platform_name']} {device['driver_version']})",
    )


def kernel_environment(config: RunConfig) -> Mapping[str, str]:
    """Return the variables with which a child finds the OpenCL runtimes."""
    return opencl_environment(config.cache_dir, inherited=environment_opencl_vendors())


def _platform(config: RunConfig) -> str | None:
    return config.opencl_platform or config.profile.opencl_platform


def _llama_plan(config: RunConfig, path: Path) -> LlamaPlan:
    scenario, settings = config.workload.scenario, config.workload.settings
    on_cpu = config.backend == "cpu"
    return LlamaPlan(
        gguf_path=str(path),
        library_dir=str(config.engine.library_dir),
        engine_build_id=config.engine.build_id,
        cache_dir=str(config.cache_dir),
        n_threads=config.n_threads,
        n_prompt=scenario.n_prompt,
        n_gen=scenario.n_gen,
        n_depth=scenario.n_depth,
        n_repetitions=_PREFILL_REPETITIONS if scenario.n_ctx <= 256 else 1,
        n_batch=max(1, scenario.n_prompt, config.workload.n_ubatch),
        n_ubatch=config.workload.n_ubatch,
        flash_attn=settings.flash_attn,
        type_k=settings.type_k,
        type_v=settings.type_v,
        n_gpu_layers=0 if on_cpu else 999,
        recorder="callback" if on_cpu else "none",
        inject_op=config.inject_op,
        inject_ratio=config.inject_ratio,
    )


def _replicates(
    config: RunConfig,
    run: Callable[[], dict[str, Any]],
    complain: Callable[[Contention, RunConfig], str | None],
    what: str,
    progress: ProgressLine,
) -> tuple[list[dict[str, Any]], str | None, int]:
    """Collect valid replicates; return them, what to say where too few were valid, and how many were left out."""
    valid: list[dict[str, Any]] = []
    complaints: list[str] = []
    while len(valid) < config.n_replicates and len(complaints) < config.n_replicates:
        progress.step(what)
        payload = run()
        complaint = complain(Contention.from_plain(payload["contention"]), config)
        if complaint is None:
            valid.append(payload)
            continue
        complaints.append(complaint)
        progress.add_steps(1)
    if len(valid) >= min(MIN_SAMPLES, config.n_replicates):
        return valid, None, len(complaints)
    seen = f"{complaints[-1]} in {len(complaints)} of {len(complaints) + len(valid)} replicates"
    return valid, f"{seen}; free the machine and run again", len(complaints)


def waiting_complaint(contention: Contention, config: RunConfig) -> str | None:
    """Say why a replicate of the engine cannot be used; None where it can."""
    waiting = _beyond(contention.waiting_ratio, config.profile.max_waiting_ratio)
    return f"threads waited {waiting} for a processor" if waiting else _steal_complaint(contention, config)


def others_complaint(contention: Contention, config: RunConfig) -> str | None:
    """Say why a replicate of the kernels cannot be used; None where it can.

    An OpenCL runtime on the processor has more threads than cores and lets them wait for each other, so what counts
    is the time that other processes took.
    """
    others = _beyond(contention.others_ratio, config.profile.max_others_ratio)
    return f"other processes took {others} of the processors" if others else _steal_complaint(contention, config)


def _steal_complaint(contention: Contention, config: RunConfig) -> str | None:
    steal = _beyond(contention.steal_ratio, config.profile.max_others_ratio)
    return f"the hypervisor took {steal} of the processors" if steal else None


def _beyond(ratio: float | None, limit: float) -> str | None:
    return f"{ratio * 100:.0f} % of the time (limit {limit * 100:g} %)" if ratio is not None and ratio > limit else None


def _place(case: Case) -> tuple[Phase | None, str | None]:
    return case.phase, case.role


def _graph_problems(
    config: RunConfig, records: Sequence[EngineRecord]
) -> dict[tuple[Phase | None, str | None], tuple[str, ...]]:
    """Find operators whose recorded graph is not the analytical one, or whose recording cannot be trusted."""
    problems: dict[tuple[Phase | None, str | None], tuple[str, ...]] = {}
    if not records or not config.workload.has_known_graph or config.backend != "cpu":
        return problems
    bad = sum(misaligned_evaluations(record) for record in records)
    dropped = sum(record.n_dropped for record in records)
    if bad or dropped:
        reason = f"the recorder lost events ({bad} evaluations incomplete, {dropped} events dropped)"
        return {(phase, role): (reason,) for phase in Phase for role in _all_roles(records)}
    for phase in config.workload.graph_phases():
        recorded = _recorded_graph(records[0], phase)
        for line in graph_differences(config.workload.graph(phase), recorded):
            role = line.split(": ", 1)[1].split(":")[0].split(" in layer")[0]
            problems.setdefault((phase, role), (f"the graph is not as expected: {line}",))
    return problems


def _recorded_graph(record: EngineRecord, phase: Phase) -> list[Any]:
    """Return the timed operators of the first prefill, or of the decode step in the middle."""
    spans = [span for span in record.spans if span.phase is phase and span.repetition == 0]
    span = spans[0] if phase is Phase.PREFILL else spans[(len(spans) - 1) // 2]
    within = [each for each in record.evaluations if span.start_ns <= each.launch_ns < span.end_ns]
    return [operator for each in within for operator in timed_operators(record.graphs[each.graph])]


def _all_roles(records: Sequence[EngineRecord]) -> set[str]:
    roles = {operator.role for record in records for graph in record.graphs for operator in timed_operators(graph)}
    return roles | {REST_ROLE}


def _case_samples(case: Case, reduced: Sequence[ReplicateSamples], problems: tuple[str, ...]) -> CaseSamples:
    values = [_sample(case, replicate) for replicate in reduced]
    measured = tuple(value for value in values if value is not None)
    return CaseSamples(case_id=case.case_id, samples_ns=measured, problems=problems)


def _sample(case: Case, replicate: ReplicateSamples) -> int | None:
    assert case.phase is not None
    if case.kind == "phase":
        return replicate.phase_ns.get(case.phase)
    if case.role == REST_ROLE:
        return replicate.rest_ns.get(case.phase)
    return replicate.operator_ns.get(case.phase, {}).get(case.role or "")


def _unclaimed(config: RunConfig, cases: Sequence[Case], reduced: Sequence[ReplicateSamples]) -> dict[str, str]:
    """Name what was recorded and no operator case claims, for workloads whose operators are enumerated or should be."""
    claimed = {(case.phase, case.role) for case in cases if case.kind == "operator"}
    prefix = f"operator/{config.workload.prefix}"
    reason = "recorded, and no case claims it: the expectation does not know this operator"
    return {
        f"{prefix}/{phase.value}/{role}": reason
        for replicate in reduced
        for phase, roles in replicate.operator_ns.items()
        for role in roles
        if (phase, role) not in claimed
    }


def _operator_shares(reduced: Sequence[ReplicateSamples]) -> dict[str, float]:
    shares: dict[str, list[float]] = defaultdict(list)
    for replicate in reduced:
        for phase, roles in replicate.operator_ns.items():
            operators_ns = sum(roles.values())
            shares[phase.value].append(operators_ns / max(1, operators_ns + replicate.rest_ns[phase]))
    return {phase: median(found) for phase, found in shares.items()}


def _kernel_samples(case: Case, records: Sequence[KernelRecord], problems: tuple[str, ...]) -> CaseSamples:
    wrong = tuple(
        f"the kernel computes wrongly: error norm {record.error_norm:.2g}, tolerance {record.tolerance:.2g}"
        for record in records
        if not record.is_correct
    )
    anomalies = tuple(
        f"{record.zero_durations} of {len(record.end_ns)} launches have no duration on the device's clock"
        for record in records
        if record.zero_durations
    )
    samples = tuple(round(median(record.durations_ns)) for record in records if record.durations_ns)
    return CaseSamples(case_id=case.case_id, samples_ns=samples, problems=(*problems, *wrong[:1], *anomalies[:1]))


def load_average() -> str:
    """Return the machine's load over the last minute."""
    return f"{os.getloadavg()[0]:.2f}"


__all__ = [
    "GroupSamples",
    "kernel_environment",
    "llama_fingerprint",
    "load_average",
    "measure_kernels",
    "measure_llama",
    "measure_probes",
    "others_complaint",
    "waiting_complaint",
]
