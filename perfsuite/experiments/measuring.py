"""Measures each group of the selected cases once, and keeps what came of it, an interruption included."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from perfsuite.errors import (
    AskedError,
    LinkError,
    MeasurementError,
    OpenClError,
    PerfsuiteError,
    PlannedError,
    SaturatedError,
)
from perfsuite.experiments.binding.measurement import BINDING, measure_binding, n_binding_pairs
from perfsuite.experiments.engine_pairs import measure_pairs
from perfsuite.experiments.engine_replicates import measure_llama
from perfsuite.experiments.enumeration import Enumeration
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.kept_speed import ceiling_time_ns, with_speed_problems
from perfsuite.experiments.kernel_pairs import measure_kernels_beside
from perfsuite.experiments.kernel_replicates import measure_kernels, opencl_device
from perfsuite.experiments.progress import ProgressLine, Terminal
from perfsuite.experiments.protocol import Experiment, Sweeps
from perfsuite.experiments.replicates import GroupSamples
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.stored import StoredBaselines
from perfsuite.measure.board.holding import NOTHING_HELD, Held
from perfsuite.records.case import COUNTED, Case, Expectation, group_of_kind
from perfsuite.records.events import Phase
from perfsuite.records.outcome import Judgement

#: The kind of the sweeps' cases, and the name of their group.
ROOFLINE = "roofline"

#: The engine's share of the budget where other groups are measured beside it.
_ENGINE_BUDGET_RATIO = 0.5


@dataclass(kw_only=True)
class Measuring:
    """What a run has measured so far."""

    config: RunConfig
    enumerated: Enumeration
    forecasts: Forecasts
    #: What is compared with, and may be measured again.
    stored: StoredBaselines
    #: By id, of the selected cases and statements: the margin that their test's marker sets.
    marker_margins: Mapping[str, float | None] = field(default_factory=dict)
    groups: dict[str, GroupSamples] = field(default_factory=dict)
    #: The selected sweeps.
    sweeps: Sweeps | None = None
    #: What pairs said, by case id, whether a test has asked for it or not.
    paired: dict[str, Judgement] = field(default_factory=dict)
    #: The kinds of experiments that came to their end.
    examined: set[str] = field(default_factory=set)
    #: Why a group could not be measured, by group.
    errors: dict[str, str] = field(default_factory=dict)
    #: The same, where it is no fault of the user: the device lacks something.
    absences: dict[str, str] = field(default_factory=dict)
    #: Why nothing more was measured, where others use the device for the most part.
    saturated: str | None = None
    durations_s: dict[str, float] = field(default_factory=dict)
    #: What having the device has come to.
    held: Held = NOTHING_HELD
    #: What the compute sentinel would take at the ceilings before the first and after the last group.
    _ceiling_times_ns: list[int] = field(default_factory=list)

    def measure(self, marker_margins: Mapping[str, float | None], reporter: Terminal | None) -> None:
        """Measure the groups of the selected cases, given by id with the margin that their test's marker sets.

        Statements about sweeps are among them, by their names. What was measured when somebody interrupts, or when the
        link is lost, is kept; both are raised.
        """
        self.marker_margins = marker_margins
        cases = self.enumerated.cases
        selected = [cases[case_id] for case_id in marker_margins if case_id in cases]
        self.sweeps = self.enumerated.sweeps.only(tuple(marker_margins)) if self.enumerated.sweeps else None
        if not selected and self.sweeps is None:
            return
        if self.config.is_against:
            self._measure_pairs(selected, reporter)
            return
        try:
            self._measure_groups(selected, reporter)
        finally:
            self._judge_speed()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the device, and of how each group was measured on it."""
        of_groups = (
            f"{name}: {note}"
            for name, group in self.groups.items()
            for note in (*self.stored.other_outputs(name, self.groups), *group.notes)
        )
        left_out = (f"left out: {name}: {lack}" for name, lack in self.config.left_out.items())
        return (*self.held.notes, *self.forecasts.notes, *of_groups, *left_out)

    def _measure_pairs(self, selected: Sequence[Case], reporter: Terminal | None) -> None:
        """Measure against the side that an option names."""
        timed = [case for case in selected if case.kind != COUNTED]
        progress = ProgressLine(reporter, min(1, len(timed)))
        if timed:
            self._probe_if_can(progress)
        self._group("llama", lambda: self._paired(timed, progress, self._expected_of_pairs))
        self._examine_all(self._examined(selected), progress)
        progress.finish()

    def _expected_of_pairs(self, case: Case) -> Expectation:
        """Return the floor of a case; how much it may take at most only a calibration says, which is not made here."""
        found = self.forecasts.expectation(case)
        return found if case.case_id in self.forecasts.calibrated else replace(found, limit_ns=None)

    def _paired(
        self,
        cases: Sequence[Case],
        progress: ProgressLine,
        expect: Callable[[Case], Expectation],
        budget_ratio: float = 1.0,
    ) -> GroupSamples:
        margins = self._margins(cases)
        paired = measure_pairs(
            self.config, cases, margins, progress, expect, budget_ratio=budget_ratio, forecast_s=self._forecast_s()
        )
        self.paired.update(paired.judgements)
        return paired.group

    def _measure_groups(self, selected: Sequence[Case], reporter: Terminal | None) -> None:
        """Measure against forecasts and stored baselines, ceilings before and after."""
        wanted = {group_of_kind(case.kind) for case in selected}
        examined = self._examined(selected)
        is_timed = wanted != {COUNTED}
        n_examined = sum(each.n_steps(case_ids) for each, case_ids in examined)
        n_binding = n_binding_pairs(self.config) if BINDING in wanted else 0
        n_replicates = len(wanted & {"llama", "kernels"}) * self.config.n_replicates + n_binding
        sweeps = self.sweeps
        n_sweeps = sweeps.n_steps if sweeps else 0
        n_calibrating = self.forecasts.n_steps if "llama" in wanted else 0
        progress = ProgressLine(reporter, n_calibrating + n_replicates + n_sweeps + n_examined + 2 * is_timed)
        if n_calibrating:
            started_s = time.monotonic()
            self.forecasts.calibrate(progress.step)
            self._add_time("calibration", started_s)
        if is_timed:
            self._probe(progress)
        if "llama" in wanted:
            engine_cases = [case for case in selected if group_of_kind(case.kind) == "llama"]
            budget_ratio = _ENGINE_BUDGET_RATIO if wanted & {BINDING, "kernels"} else 1.0
            self._group("llama", lambda: self._measure_engine(engine_cases, progress, budget_ratio))
        if BINDING in wanted:
            binding_cases = [case for case in selected if group_of_kind(case.kind) == BINDING]
            self._group(BINDING, lambda: self._measure_binding(binding_cases, progress))
        if "kernels" in wanted:
            kernels = [case for case in selected if case.kind == "kernel"]
            self._group("kernels", lambda: self._measure_kernels(kernels, progress))
        if sweeps is not None:
            self._group(ROOFLINE, lambda: sweeps.measure(progress))
        self._examine_all(examined, progress)
        if is_timed:
            self._probe_if_can(progress)
        progress.finish()

    def _examined(self, selected: Sequence[Case]) -> list[tuple[Experiment, list[str]]]:
        """Return the experiments, each with its selected cases."""
        return [
            (each, [case.case_id for case in selected if case.kind == each.kind])
            for each in self.enumerated.experiments
        ]

    def _examine_all(self, examined: Sequence[tuple[Experiment, list[str]]], progress: ProgressLine) -> None:
        for experiment, case_ids in examined:
            if case_ids:
                self._examine(experiment, case_ids, progress)

    def _measure_engine(self, selected: Sequence[Case], progress: ProgressLine, budget_ratio: float) -> GroupSamples:
        """Measure the engine beside the one that made the baseline, or by itself where that is not at hand."""
        notes: tuple[str, ...] = ()
        if self.config.old is not None:
            try:
                return self._paired(selected, progress, self.forecasts.expectation, budget_ratio)
            except MeasurementError as error:  # if it is the new engine that fails, it fails once more below
                notes = (f"the build of the baseline does not run here, so its stored times judge: {error}",)
        cases = [case for case in self.enumerated.cases.values() if group_of_kind(case.kind) == "llama"]
        if self.enumerated.mapping is None:
            group = measure_llama(self.config, cases, progress, forecast_s=self._forecast_s())
            return replace(group, notes=(*group.notes, *notes))
        from perfsuite.experiments.engine_opencl import measure_opencl  # as in `enumeration`

        return measure_opencl(self.config, cases, self.enumerated.mapping, progress)

    def _forecast_s(self) -> float | None:
        """Return what the scenario is forecast to take once, its depth, all prompts and injected slowdowns included."""
        config, scenario = self.config, self.config.workload.scenario
        whole = next((case for case in self.enumerated.cases.values() if case.phase is Phase.END_TO_END), None)
        found_ns = None if whole is None or config.opencl else self.forecasts.expectation(whole).expected_ns
        if not found_ns or config.is_planned or config.is_against:  # another build may be slow on purpose
            return None
        n_tokens = max(1, scenario.n_prompt + scenario.n_gen)
        n_all = scenario.n_depth + max(n_tokens, sum(config.prompt_lengths))
        return found_ns / 1e9 * n_all / n_tokens * (1.0 + config.inject_ratio)

    def _measure_binding(self, selected: Sequence[Case], progress: ProgressLine) -> GroupSamples:
        """Measure llama-cpp-python beneath both engines, or beside the native driver where stored times judge."""
        cases = [case for case in self.enumerated.cases.values() if group_of_kind(case.kind) == BINDING]
        found = measure_binding(self.config, cases, self._margins(selected), progress)
        self.paired.update(found.judgements)
        return found.group

    def _measure_kernels(self, kernels: Sequence[Case], progress: ProgressLine) -> GroupSamples:
        """Measure the suite's kernels beside the sources that made their baseline, or by themselves."""
        notes: tuple[str, ...] = ()
        device = opencl_device(self.config)
        if self.config.baseline_mode == "compare":
            try:
                paired = measure_kernels_beside(
                    self.config,
                    kernels,
                    device,
                    self._margins(kernels),
                    partial(self.stored.at_hand, "kernels"),
                    progress,
                    self.forecasts.expectation,
                )
            except MeasurementError as error:
                paired, notes = None, (f"the kernels of the baseline do not run here, so its times judge: {error}",)
            if paired is not None:
                self.paired.update(paired.judgements)
                return paired.group
        group = measure_kernels(self.config, kernels, device, progress)
        return replace(group, notes=(*group.notes, *notes))

    def _margins(self, cases: Sequence[Case]) -> dict[str, float]:
        margins = self.config.margins
        return {case.case_id: margins.margin_ratio(case.kind, self.marker_margins[case.case_id]) for case in cases}

    def _examine(self, experiment: Experiment, case_ids: Sequence[str], progress: ProgressLine) -> None:
        """Let an experiment measure its cases; it is no group, for it has no baselines."""
        if self._is_refused(experiment.kind):
            return
        started_s = time.monotonic()
        try:
            experiment.measure(case_ids, progress)
            self.examined.add(experiment.kind)
        except SaturatedError as error:
            self._refuse(experiment.kind, error)
        except PerfsuiteError as error:
            self.errors[experiment.kind] = str(error)
        finally:
            self._add_time(experiment.kind, started_s)

    def _group(self, name: str, measure: Callable[[], GroupSamples]) -> None:
        if self._is_refused(name):
            return
        started_s = time.monotonic()
        try:
            self.groups[name] = measure()
        except LinkError:  # no other group has one
            raise
        except PlannedError:
            pass
        except OpenClError as error:
            self.absences[name] = str(error)
        except SaturatedError as error:
            self._refuse(name, error)
        except PerfsuiteError as error:
            self.errors[name] = str(error)
        finally:
            self._add_time(name, started_s)
        self._go_on(name)

    def _refuse(self, name: str, error: SaturatedError) -> None:
        """Measure nothing more on a device that others use for the most part."""
        self.absences[name] = self.saturated = str(error)

    def _is_refused(self, name: str) -> bool:
        """Whether others use the device for the most part, so that this is not measured any more."""
        if self.saturated is not None:
            self.absences[name] = self.saturated
        return self.saturated is not None

    def _add_time(self, name: str, started_s: float) -> None:
        self.durations_s[name] = round(self.durations_s.get(name, 0.0) + time.monotonic() - started_s, 3)

    def _go_on(self, name: str) -> None:
        """Raise what ends a whole run, and note what ended a group."""
        broken_off_by = self.groups[name].broken_off_by if name in self.groups else None
        if isinstance(broken_off_by, SaturatedError):
            self._refuse(name, broken_off_by)
        elif isinstance(broken_off_by, MeasurementError):
            self.errors[name] = str(broken_off_by)
        elif broken_off_by is not None:
            raise broken_off_by
        self.held = self.config.board.held()

    def _probe_if_can(self, progress: ProgressLine) -> None:
        """Measure the ceilings, or once more; where that fails, what there is stands, and nothing is lost."""
        if self.saturated is not None:
            return
        try:
            self._probe(progress)
        except LinkError:
            raise
        except PerfsuiteError as error:
            self.errors["ceilings"] = str(error)

    def _judge_speed(self) -> None:
        """Hold each group's sentinels against those at its beginning, and the ceilings before and after all groups."""
        times_ns = self._ceiling_times_ns
        ends_ns = (times_ns[0], times_ns[1]) if len(times_ns) > 1 else None
        self.groups = {name: with_speed_problems(group, ends_ns) for name, group in self.groups.items()}

    def _probe(self, progress: ProgressLine) -> None:
        progress.step("ceilings")
        started_s = time.monotonic()
        with suppress(AskedError):
            self._ceiling_times_ns.append(ceiling_time_ns(self.forecasts.probe().fp32_flops_per_s))
        self.held = self.config.board.held()
        self._add_time("ceilings", started_s)
