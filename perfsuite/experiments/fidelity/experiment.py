"""Compares the suite's timings with their ground truths once for all cases of fidelity."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from perfsuite.errors import MeasurementError
from perfsuite.experiments.fidelity.limits import ENGINE_NAME, FIDELITY, MEAN_NAME, PHASE_PREFIX, judge_fidelity
from perfsuite.experiments.fidelity.phases import COMPARED
from perfsuite.experiments.fidelity.recording import N_PROCESSES, FidelityRequest, record_fidelity
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRun
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig
from perfsuite.records.case import Case
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement
from perfsuite.records.whole_file import write_json
from perfsuite.workload.model_shape import check_generates

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
        """Measure what the given cases need, and keep what came out beside the run's file."""
        request = fidelity_request(self.config, case_ids)
        self.found = record_fidelity(request, lambda text: progress.step(f"fidelity, {text}"))
        write_json(self.config.run_dir / "fidelity.json", self.found.to_plain(), MeasurementError)

    def judge(self, case_id: str, reason: str) -> Judgement:
        """Judge one case."""
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
        engine=config.engine,
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
