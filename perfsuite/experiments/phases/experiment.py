"""The phases of a run of the engine, its operators, and the kernels that it launches on an OpenCL device."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from perfsuite.errors import MeasurementError
from perfsuite.expectation.cases import engine_kernel_cases, operator_cases, phase_cases, recorded_operator_cases
from perfsuite.experiments.engine_runs import graph_settings, llama_fingerprint
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.phases.opencl import measure_opencl, open_mapping
from perfsuite.experiments.phases.pairs import measure_pairs
from perfsuite.experiments.phases.replicates import measure_llama
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment, Selection
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.said_graphs import with_run_graphs
from perfsuite.experiments.samples import GroupSamples
from perfsuite.experiments.stored import StoredBaselines
from perfsuite.measure.engine_store import engine_folder
from perfsuite.records.case import ENGINE_GROUP, ENGINE_KERNEL, Case, Expectation
from perfsuite.records.events import EMBEDDING_ROLE, GRAPH_PHASES, Phase
from perfsuite.trace.opencl.kernel_mapping import KernelMapping

#: The part of the run's budget that it takes where other experiments take theirs.
_SHARED_BUDGET_RATIO = 0.5


def prepared(config: RunConfig, stored: StoredBaselines, *, is_measured: bool) -> RunConfig:
    """Return a run with what its board's engine says of its model, and the engine that made its baseline.

    Raises PerfsuiteError: the engine cannot load the model, or the stored one is damaged.
    """
    config = _with_stored_side(config, stored) if is_measured and config.is_timed else config
    return config if config.is_planned else with_run_graphs(config)


def _with_stored_side(config: RunConfig, stored: StoredBaselines) -> RunConfig:
    """Return the run with the engine that made its baseline as the old side, where that is at hand.

    Without it the stored times alone judge. Pairs of an OpenCL backend have no trace of kernels, and prompts of many
    lengths are not paired: these are judged by stored times, too.
    """
    is_paired = config.baseline_mode == "compare" and config.old is None and config.opencl is None
    if not is_paired or config.prompt_lengths:
        return config
    found = stored.at_hand(ENGINE_GROUP, llama_fingerprint(config, ""), within=f"/{config.workload.prefix}/")
    if found is None:
        return config
    (session, differences), folder = found
    engine = config.board.find_engine(engine_folder(folder))
    old = replace(config, other_engine=engine, inject_op=None, inject_phases=())
    text = f"the build of the baseline of {session.recorded_at[:16]}"
    return replace(config, old=old, old_text=text, old_session=session, old_differences=differences)


def open_experiments(config: RunConfig, forecasts: Forecasts, stored: StoredBaselines) -> tuple[Experiment, ...]:
    """Return the experiment; operators of a graph that is not known are those of the stored baselines.

    Raises PerfsuiteError: the kernels of the OpenCL backend cannot be told apart. Pairs have no trace of them.
    """
    is_mapped = config.opencl is not None and config.old is None
    return (
        Phases(
            config=config,
            forecasts=forecasts,
            recorded=stored.case_ids(ENGINE_GROUP, graph_settings(config)),
            mapping=open_mapping(config) if is_mapped else None,
        ),
    )


@dataclass(kw_only=True)
class Phases(Experiment):
    """What the engine takes for the run's workload."""

    config: RunConfig
    forecasts: Forecasts
    #: The ids of operators that stored baselines have.
    recorded: Collection[str]
    #: Which kernel computes which operator, on the OpenCL backend.
    mapping: KernelMapping | None
    kind: str = "phase"
    kinds: Collection[str] = ("phase", "operator", ENGINE_KERNEL)
    name: str = ENGINE_GROUP
    has_reference: bool = True
    shares_budget: bool = True
    needs_calibration: bool = True

    def cases(self) -> Iterator[Case]:
        """Enumerate phases, operators, and the kernels that the backend tells."""
        yield from self._cases

    @cached_property
    def _cases(self) -> tuple[Case, ...]:
        workload = self.config.workload
        phases = tuple(phase_cases(workload))
        operators = (*operator_cases(workload), *recorded_operator_cases(workload, self.recorded))
        if self.config.backend == "cpu":
            return (*phases, *operators)
        # The gather of the embeddings is done by the processor, and stays in the prefill.
        phases = tuple(case for case in phases if case.phase is not Phase.EMBEDDING)
        if self.mapping is None:
            return phases
        roles = {phase: self.mapping.kernel_roles(phase) for phase in GRAPH_PHASES}
        operators = tuple(case for case in operators if case.role != EMBEDDING_ROLE)
        return (*phases, *operators, *engine_kernel_cases(workload, roles))

    def n_steps(self, case_ids: Collection[str]) -> int:
        """Return the replicates; pairs say themselves how many they are."""
        return 1 if self.config.is_against else self.config.n_replicates

    def measure(self, case_ids: Selection, progress: ProgressLine) -> GroupSamples:
        """Measure the engine beside the one that made the baseline, or by itself where that is not at hand."""
        notes: tuple[str, ...] = ()
        if self.config.old is not None:
            try:
                return self._measured_in_pairs(case_ids, progress)
            except MeasurementError as error:  # if it is the new engine that fails, it fails once more below
                if self.config.is_against:
                    raise
                notes = (f"the build of the baseline does not run here, so its stored times judge: {error}",)
        if self.mapping is not None:
            return measure_opencl(self.config, self._cases, self.mapping, progress)
        group = measure_llama(self.config, self._cases, progress, forecast_s=self._forecast_s())
        return replace(group, notes=(*group.notes, *notes))

    def _measured_in_pairs(self, case_ids: Selection, progress: ProgressLine) -> GroupSamples:
        cases = [case for case in self._cases if case.case_id in case_ids]
        return measure_pairs(
            self.config,
            cases,
            self.config.margins.of_cases(cases, case_ids),
            progress,
            self._expected_of_pairs if self.config.is_against else self.forecasts.expectation,
            budget_ratio=1.0 if case_ids.is_alone else _SHARED_BUDGET_RATIO,
            forecast_s=self._forecast_s(),
        )

    def _expected_of_pairs(self, case: Case) -> Expectation:
        """Return the floor of a case; how much it may take at most only a calibration says, which is not made here."""
        found = self.forecasts.expectation(case)
        return found if case.case_id in self.forecasts.calibrated else replace(found, limit_ns=None)

    def _forecast_s(self) -> float | None:
        """Return what the scenario is forecast to take once, its depth, all prompts and injected slowdowns included."""
        config, scenario = self.config, self.config.workload.scenario
        whole = next((case for case in self._cases if case.phase is Phase.END_TO_END), None)
        found_ns = None if whole is None or config.opencl else self.forecasts.expectation(whole).expected_ns
        if not found_ns or config.is_planned or config.is_against:  # another build may be slow on purpose
            return None
        n_tokens = max(1, scenario.n_prompt + scenario.n_gen)
        n_all = scenario.n_depth + max(n_tokens, sum(config.prompt_lengths))
        return found_ns / 1e9 * n_all / n_tokens * (1.0 + config.inject_ratio)

    def keep_engine(self, group: GroupSamples) -> str:
        """Keep the engine."""
        return self.config.board.keep(self.config.engine, group.engine_version)

    def steps_ns(self, group: GroupSamples) -> Mapping[Phase, float]:
        """Return what the phases that evaluate a graph took, as far as they were measured."""
        steps = [case for case in self._cases if case.kind == "phase" and case.phase in GRAPH_PHASES]
        found = [
            (case.phase, group.samples[case.case_id].samples_ns) for case in steps if case.case_id in group.samples
        ]
        return {phase: median(samples_ns) for phase, samples_ns in found if phase is not None and samples_ns}
