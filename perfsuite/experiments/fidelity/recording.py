"""Measures what a run of fidelity asks for; what the machine's other work disturbs is reported but not used."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfsuite.device.profile import Profile
from perfsuite.device.work_folder import work_folder
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.experiments.fidelity.limits import LEAST_KERNEL_NS, SHORT_PHASE_NS
from perfsuite.experiments.fidelity.phases import ComparedRun, operator_rows, phase_rows
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun, kernel_row
from perfsuite.measure.board.protocol import Board, build_logs
from perfsuite.measure.board.run_folder import RUN_FOLDER
from perfsuite.measure.engine import Engine
from perfsuite.measure.llama_plan import llama_plan, with_drawn_layout
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.phase_tracer import read_trace, traced_calls, tracer_environment
from perfsuite.measure.plan import DevicesPlan, DuplicationPlan, EngineDuplicationPlan, LlamaPlan, UprobePlan
from perfsuite.measure.schedule import Rule, others_complaint, run_undisturbed, waiting_complaint
from perfsuite.records.call_trace import CallTrace
from perfsuite.records.duplication import KernelDuplication
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.trace.call_spans import CallPattern
from perfsuite.workload.kernel_catalog import STANDARD_KERNELS

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
    engine: Engine
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

    def attempt(self, what: str, measure: Callable[[], None]) -> None:
        """Keep the reason where a part cannot be measured, and go on with the next."""
        try:
            measure()
        except PerfsuiteError as error:
            self.problems.append(f"{what}: {error}")


def record_fidelity(request: FidelityRequest, announce: Announce) -> FidelityRun:
    """Measure every kind that is asked for; a part that cannot be measured is a problem of the run, with its reason."""
    found = _Findings(conditions=dict(request.board.facts().clock_conditions))
    if request.kinds & {FidelityKind.PHASES, FidelityKind.OPERATORS}:
        found.attempt("phases", lambda: _add_phases(request, found, announce))
        if request.with_uprobes and FidelityKind.PHASES in request.kinds:
            _add_uprobes(request, found, announce)
    if FidelityKind.KERNELS in request.kinds:
        if request.case_ids:
            found.attempt("kernels", lambda: _add_own_kernels(request, found, announce))
        if request.opencl is not None and request.with_engine_kernels:
            opencl = request.opencl
            found.attempt("the engine's kernels", lambda: _add_engine_kernels(request, opencl, found, announce))
    return FidelityRun(
        device=request.profile.name,
        platform=found.platform,
        conditions=found.conditions,
        rows=tuple(found.rows),
        problems=tuple(found.problems),
    )


def _add_phases(request: FidelityRequest, found: _Findings, announce: Announce) -> None:
    runs, library = [], request.board.instruments.phase_tracer(request.engine)
    for plan in _plans(request, announce, "interposed tracer"):
        with work_folder() as folder:
            tracer = tracer_environment(library, RUN_FOLDER / _CALLS)
            payload = _engine_run(plan, request, {**_settings(request), **tracer}, files=folder)
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
            payload = _engine_run(UprobePlan(llama=plan), request, _settings(request))
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


def _add_engine_kernels(request: FidelityRequest, opencl: OpenClBackend, found: _Findings, announce: Announce) -> None:
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
    plan = llama_plan(
        request.workload,
        request.engine,
        gguf_path=request.board.place_weights(request.workload.weights),
        cache_dir=request.board.facts().cache_dir,
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
    return run_undisturbed(request.board, plan, rule, extra_environment=environment, files=files)


def _settings(request: FidelityRequest) -> dict[str, str]:
    return {} if request.opencl is None else dict(request.opencl.environment())


def _compared(plan: LlamaPlan, payload: dict[str, Any], trace: CallTrace, *, with_warm_up: bool) -> ComparedRun:
    pattern = CallPattern(
        n_prompt=plan.n_prompt,
        n_gen=plan.n_gen,
        n_depth=plan.n_depth,
        n_batch=plan.n_batch,
        n_repetitions=plan.n_repetitions,
        with_warm_up=with_warm_up,
    )
    return ComparedRun(record=EngineRecord.from_plain(payload.get("engine")), trace=trace, pattern=pattern)
