"""Compares the suite's timings with ground truths, as a run of them asks for it, or once for all cases of a session."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfsuite.device.profile import Profile
from perfsuite.device.work_folder import work_folder
from perfsuite.errors import MeasurementError, PerfsuiteError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.experiments.fidelity.phases import COMPARED, ComparedRun, operator_rows, phase_rows
from perfsuite.experiments.fidelity.scored_run import (
    ENGINE_NAME,
    FIDELITY,
    LEAST_KERNEL_NS,
    MEAN_NAME,
    PHASE_PREFIX,
    SHORT_PHASE_NS,
    FidelityKind,
    FidelityRow,
    FidelityRun,
    judge_fidelity,
    kernel_row,
)
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.protocol import Board, build_logs
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.llama_plan import llama_plan, with_drawn_layout
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.phase_tracer import read_trace, traced_calls, tracer_environment
from perfsuite.measure.plan import DevicesPlan, DuplicationPlan, EngineDuplicationPlan, LlamaPlan, UprobePlan
from perfsuite.measure.schedule import Rule, others_complaint, run_undisturbed, waiting_complaint
from perfsuite.records.call_trace import CallTrace
from perfsuite.records.case import Case
from perfsuite.records.codec import plain_fields
from perfsuite.records.duplication import KernelDuplication
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.records.outcome import Judgement
from perfsuite.records.whole_file import write_json
from perfsuite.trace.call_spans import CallPattern
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS
from perfsuite.workload.model_shape import check_generates

#: What the phase tracer writes.
_CALLS = "calls"

#: Fresh processes of each tracer.
N_PROCESSES = 3
#: Pairs of a base run and a duplicated run, and the time for those of one kernel.
N_ROUNDS = 5
KERNEL_BUDGET_NS = 6_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FidelityRequest:
    """What is compared, on what."""

    profile: Profile
    board: Board
    workload: LlamaWorkload
    #: Where the logs of failed builds go, on this machine.
    log_dir: Path
    n_threads: int
    opencl_platform: str | None
    #: The engine's OpenCL backend, and whether its kernels are duplicated as well.
    opencl: OpenClBackend | None = None
    with_engine_kernels: bool = True
    kinds: frozenset[FidelityKind] = frozenset(FidelityKind)
    #: Whether phases are compared with kernel probes as well, where the kernel allows them.
    with_uprobes: bool = True
    #: The suite's own kernels.
    case_ids: tuple[str, ...] = tuple(case.case_id for case in STANDARD_KERNELS)
    #: A slowdown on purpose, which the suite's spans have in them and the tracer's do not.
    inject_phases: tuple[str, ...] = ()
    inject_ratio: float = 0.0
    n_processes: int = N_PROCESSES
    n_rounds: int = N_ROUNDS
    kernel_budget_ns: int = KERNEL_BUDGET_NS


#: Repetitions within a process.
N_REPETITIONS = 3
#: The engine's kernels of each phase.
N_ENGINE_KERNELS = 8
#: A run over all kernels takes a minute or two.
_N_KERNEL_TRIES = 2

Announce = Callable[[str], None]


@dataclass
class _Findings:
    """What has come out so far."""

    conditions: dict[str, str]
    rows: list[FidelityRow] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    platform: str | None = None


def record_fidelity(request: FidelityRequest, announce: Announce) -> FidelityRun:
    """Measure every kind that is asked for; a part that cannot be measured is a problem of the run, with its reason."""
    found = _Findings(conditions=dict(request.board.facts().clock_conditions))
    has_phases, has_kernels = FidelityKind.PHASES in request.kinds, FidelityKind.KERNELS in request.kinds
    has_engine_kernels = has_kernels and request.opencl is not None and request.with_engine_kernels
    for what, is_asked, measure in (
        ("phases", has_phases or FidelityKind.OPERATORS in request.kinds, _add_phases),
        ("uprobes", has_phases and request.with_uprobes, _add_uprobes),
        ("kernels", has_kernels and request.case_ids, _add_own_kernels),
        ("the engine's kernels", has_engine_kernels, _add_engine_kernels),
    ):
        try:
            if is_asked:
                measure(request, found, announce)
        except PerfsuiteError as error:
            found.problems.append(f"{what}: {error}")
    return FidelityRun(
        device=request.profile.name,
        platform=found.platform,
        conditions=found.conditions,
        rows=tuple(found.rows),
        problems=tuple(found.problems),
    )


def _add_phases(request: FidelityRequest, found: _Findings, announce: Announce) -> None:
    runs, library = [], request.board.instruments.phase_tracer(request.board.facts().engine)
    for plan in _plans(request, announce, "interposed tracer"):
        with work_folder() as folder:
            tracer = tracer_environment(library, RUN_FOLDER / _CALLS)
            payload = _engine_run(plan, request, tracer, files=folder)
            runs.append(_compared(plan, payload, read_trace(folder / _CALLS), with_warm_up=True))
    if FidelityKind.PHASES in request.kinds:
        found.rows += phase_rows(runs)
    if FidelityKind.OPERATORS in request.kinds:
        found.rows += operator_rows(runs)


def _add_uprobes(request: FidelityRequest, found: _Findings, announce: Announce) -> None:
    """Compare with kernel probes; a trap takes microseconds, so short phases are left to the interposed tracer."""
    runs = []
    try:
        for plan in _plans(request, announce, "kernel probes"):
            payload = _engine_run(UprobePlan(llama=plan), request, {})
            runs.append(_compared(plan, payload, traced_calls(payload["rings"]), with_warm_up=False))
        found.rows += [row for row in phase_rows(runs) if (row.ground_truth_ns or 0) >= SHORT_PHASE_NS]
        found.conditions["uprobes"] = "used"
    except PerfsuiteError as error:
        found.conditions["uprobes"] = f"not used: {error}"


def _add_own_kernels(request: FidelityRequest, found: _Findings, announce: Announce) -> None:
    environment = request.board.facts().opencl_environment
    device = request.board.run(DevicesPlan(platform=request.opencl_platform), extra_environment=environment)["chosen"]
    found.platform = f"{device['device_name']} ({device['platform_name']} {device['driver_version']})"
    announce(f"{len(request.case_ids)} kernels of the suite's own, {request.n_rounds} rounds, {found.platform}")
    plan = DuplicationPlan(
        case_ids=request.case_ids,
        platform=request.opencl_platform,
        n_rounds=request.n_rounds,
        budget_ns=request.kernel_budget_ns,
        seed=0,
        log_dir=str(build_logs(request.board, request.log_dir)),
    )
    found.rows += _kernel_rows(plan, request, environment)


def _add_engine_kernels(request: FidelityRequest, found: _Findings, announce: Announce) -> None:
    opencl = request.opencl
    assert opencl is not None
    announce(f"the engine's kernels, {request.n_rounds} rounds, {opencl.device}")
    plan = EngineDuplicationPlan(
        llama=_plan(request),
        layer_library=str(opencl.tracing_layer),
        log_dir=str(RUN_FOLDER),
        phases=(Phase.PREFILL.value, Phase.DECODE.value),
        n_kernels=N_ENGINE_KERNELS,
        least_ns=LEAST_KERNEL_NS,
        n_rounds=request.n_rounds,
        budget_ns=request.kernel_budget_ns,
    )
    found.rows += _kernel_rows(plan, request, opencl.environment(RUN_FOLDER))


def _kernel_rows(
    plan: DuplicationPlan | EngineDuplicationPlan, request: FidelityRequest, environment: Mapping[str, str]
) -> list[FidelityRow]:
    rule = Rule(profile=request.profile, complain=others_complaint)
    payload = run_undisturbed(request.board, plan, rule, extra_environment=environment, n_tries=_N_KERNEL_TRIES)
    return [kernel_row(KernelDuplication.from_plain(each)) for each in payload["kernels"]]


def _plans(request: FidelityRequest, announce: Announce, tracer: str) -> Iterator[LlamaPlan]:
    order = random.Random()
    plan = _plan(request)
    for number in range(request.n_processes):
        announce(f"{tracer}, process {number + 1} of {request.n_processes}")
        yield with_drawn_layout(plan, order)


def _plan(request: FidelityRequest) -> LlamaPlan:
    facts = request.board.facts()
    plan = llama_plan(
        request.workload,
        facts.engine,
        gguf_path=request.board.place_weights(request.workload.weights),
        cache_dir=facts.cache_dir,
        n_threads=request.n_threads,
        opencl=request.opencl,
        n_repetitions=N_REPETITIONS,
    )
    return replace(plan, inject_phases=request.inject_phases, inject_phase_ratio=request.inject_ratio)


def _engine_run(
    plan: LlamaPlan | UprobePlan,
    request: FidelityRequest,
    environment: Mapping[str, str],
    *,
    files: Path | None = None,
) -> dict[str, Any]:
    """Run the engine undisturbed; the threads of an OpenCL runtime wait for each other, which disturbs nothing."""
    rule = Rule(profile=request.profile, complain=waiting_complaint if request.opencl is None else others_complaint)
    own = {} if request.opencl is None else request.opencl.environment()
    return run_undisturbed(request.board, plan, rule, extra_environment={**own, **environment}, files=files)


def _compared(plan: LlamaPlan, payload: dict[str, Any], trace: CallTrace, *, with_warm_up: bool) -> ComparedRun:
    told = plain_fields(plan, "n_prompt", "n_gen", "n_depth", "n_batch", "n_repetitions")
    pattern = CallPattern(**told, with_warm_up=with_warm_up)
    return ComparedRun(record=EngineRecord.from_plain(payload.get("engine")), trace=trace, pattern=pattern)


#: Kernels of the suite's own that take 0.1 ms and more on a processor.
LONG_KERNELS = (
    "kernel/gemm/m576-n128-k576/f32",
    "kernel/gemm/m1536-n64-k576/f32",
    "kernel/gemm/m192-n128-k576/f16",
    "kernel/gemm/m2048-n32-k2048/f16",
    "kernel/gemv_q8_0/m2048-k8192/q8_0",
    "kernel/gemv_q4_0/m8192-k2048/q4_0",
    "kernel/bmm_kqv/heads9-kvheads3-tokens64-positions64-head64/f16",
    "kernel/bmm_kqv/heads32-kvheads8-tokens1-positions1024-head64/f16",
    "kernel/rope_normal/tokens128-heads32-head64/f32",
    "kernel/silu_mul/count1048576/f32",
    "kernel/add/count1048576/f32",
    "kernel/dequantize_q8_0/count884736/q8_0",
    "kernel/dequantize_q4_0/count884736/q4_0",
)


def open_experiments(config: RunConfig, *_: object) -> tuple[Experiment, ...]:
    """Return the experiment of ``--perf-fidelity``."""
    check_generates(config.workload.weights.shape, "--perf-fidelity")
    return (FidelityExperiment(config=config),)


@dataclass(kw_only=True)
class FidelityExperiment(Experiment):
    """The comparison of one run with its ground truths."""

    config: RunConfig
    #: What ground truths have said.
    found: FidelityRun | None = None
    kind: str = FIDELITY

    def cases(self) -> Iterator[Case]:
        """Enumerate a case for each phase that the scenario has, each long kernel, and the kernels' mean.

        On the OpenCL backend the engine's kernels are one case more, for they are not known before a run; the gather
        of the embeddings is none there, for only the processor's operators are told apart.
        """
        scenario, is_opencl = self.config.workload.scenario, self.config.opencl is not None
        absent = set() if scenario.n_prompt else {Phase.PREFILL, Phase.EMBEDDING}
        absent |= set() if scenario.n_gen else {Phase.DECODE}
        absent |= {Phase.EMBEDDING} if is_opencl else set()
        phases = (f"{PHASE_PREFIX}{phase.value}" for phase in COMPARED if phase not in absent)
        kernels = (f"{FIDELITY}/{case_id}" for case_id in LONG_KERNELS)
        for case_id in (*phases, *kernels, MEAN_NAME, *((ENGINE_NAME,) if is_opencl else ())):
            yield Case(case_id=case_id, kind=FIDELITY)

    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return the processes of the tracer that the cases need, and one step for the kernels."""
        kinds = _kinds(case_ids)
        return N_PROCESSES * (FidelityKind.PHASES in kinds) + (FidelityKind.KERNELS in kinds)

    def measure(self, case_ids: Collection[str], progress: ProgressLine) -> None:
        request = fidelity_request(self.config, case_ids)
        self.found = record_fidelity(request, lambda text: progress.step(f"fidelity, {text}"))
        write_json(self.config.run_dir / "fidelity.json", self.found.to_plain(), MeasurementError)

    def judge(self, case_id: str, reason: str) -> Judgement:
        return judge_fidelity(self.found, case_id, reason=reason)


def _kinds(case_ids: Collection[str]) -> frozenset[FidelityKind]:
    are_phases = {case_id.startswith(PHASE_PREFIX) for case_id in case_ids}
    return frozenset(FidelityKind.PHASES if is_phase else FidelityKind.KERNELS for is_phase in are_phases)


def fidelity_request(config: RunConfig, case_ids: Collection[str]) -> FidelityRequest:
    """Ask for what the given cases need; their mean, and the engine's kernels, need all kernels."""
    wanted = {case_id.removeprefix(f"{FIDELITY}/") for case_id in case_ids}
    needs_all = MEAN_NAME in case_ids
    return FidelityRequest(
        profile=config.profile,
        board=config.board,
        workload=config.workload,
        log_dir=config.run_dir,
        n_threads=config.n_threads,
        opencl_platform=config.opencl_platform or config.profile.opencl_platform,
        opencl=config.opencl,
        with_engine_kernels=needs_all or ENGINE_NAME in case_ids,
        kinds=_kinds(case_ids),
        with_uprobes=False,
        case_ids=tuple(each for each in LONG_KERNELS if needs_all or each in wanted),
        inject_phases=config.inject_phases,
        inject_ratio=config.inject_ratio,
    )
