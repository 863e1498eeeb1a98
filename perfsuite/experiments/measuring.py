"""Measures each experiment of a run once, and keeps what came of it, an interruption included."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perfsuite.errors import (
    AskedError,
    LinkError,
    MeasurementError,
    OpenClError,
    PerfsuiteError,
    PlannedError,
    SaturatedError,
)
from perfsuite.experiments.kept_speed import with_speed_problems
from perfsuite.experiments.progress import ProgressLine, Terminal
from perfsuite.experiments.protocol import Experiment, Selection
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.samples import GroupSamples
from perfsuite.experiments.stored import StoredBaselines
from perfsuite.measure.board.holding import NOTHING_HELD, Held

if TYPE_CHECKING:
    from perfsuite.experiments.forecasts import Forecasts


@dataclass(kw_only=True)
class Measuring:
    """What a run has measured so far."""

    config: RunConfig
    experiments: Sequence[Experiment]
    forecasts: Forecasts
    stored: StoredBaselines
    #: By id, of the selected cases and statements: the margin that their test's marker sets.
    marker_margins: Mapping[str, float | None] = field(default_factory=dict)
    #: What was measured of experiments that have a reference, by their names.
    groups: dict[str, GroupSamples] = field(default_factory=dict)
    #: The names of experiments that came to their end.
    ended: set[str] = field(default_factory=set)
    #: Why an experiment, or the ceilings, could not be measured.
    errors: dict[str, str] = field(default_factory=dict)
    #: The same, where it is no fault of the user: the device lacks something.
    absences: dict[str, str] = field(default_factory=dict)
    #: Why nothing more was measured, where others use the device for the most part.
    saturated: str | None = None
    durations_s: dict[str, float] = field(default_factory=dict)
    #: What having the device has come to.
    held: Held = NOTHING_HELD
    #: What the compute sentinel would take at the ceilings before the first and after the last experiment.
    _ceiling_times_ns: list[int] = field(default_factory=list)

    def measure(self, marker_margins: Mapping[str, float | None], reporter: Terminal | None) -> None:
        """Measure what the selected cases and statements need, given with the margin that their test's marker sets.

        What was measured when somebody interrupts, or when the link is lost, is kept; both are raised. The ceilings are
        measured before and after, against another side once.
        """
        self.marker_margins = marker_margins
        selected = self._selected()
        if not selected:
            return
        is_against, is_timed = self.config.is_against, any(each.is_timed for each, _ in selected)
        n_calibrating = self.forecasts.n_steps if any(each.needs_calibration for each, _ in selected) else 0
        n_steps = n_calibrating + sum(each.n_steps(wanted) for each, wanted in selected)
        progress = ProgressLine(reporter, n_steps + (0 if is_against else 2 * is_timed))
        try:
            if n_calibrating:
                started_s = time.monotonic()
                self.forecasts.calibrate(progress.step)
                self._add_time("calibration", started_s)
            if is_timed:
                self._probe_if_can(progress) if is_against else self._probe(progress)
            for experiment, wanted in selected:
                self._examine(experiment, wanted, progress)
            if is_timed and not is_against:
                self._probe_if_can(progress)
            progress.finish()
        finally:
            self._judge_speed()

    def _selected(self) -> list[tuple[Experiment, Selection]]:
        """Return the experiments that are wanted, with their cases and statements."""
        found = []
        for experiment in self.experiments:
            names = (*(case.case_id for case in experiment.cases()), *experiment.statements())
            wanted = Selection({name: self.marker_margins[name] for name in names if name in self.marker_margins})
            if wanted:
                found.append((experiment, wanted))
        sharing = [experiment for experiment, _ in found if experiment.shares_budget]
        for _, wanted in found:
            wanted.is_alone = len(sharing) <= 1
        return found

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

    def _examine(self, experiment: Experiment, wanted: Selection, progress: ProgressLine) -> None:
        """Let an experiment measure what is wanted; why it cannot is kept for its cases."""
        name = experiment.name
        if self.saturated is not None:  # others use the device for the most part
            self.absences[name] = self.saturated
            return
        started_s = time.monotonic()
        try:
            group = experiment.measure(wanted, progress)
            self.ended.add(name)
            if group is not None:
                self.groups[name] = group
        except LinkError:  # nothing else has one
            raise
        except SaturatedError as error:
            self.absences[name] = self.saturated = str(error)
        except PerfsuiteError as error:
            is_lack = experiment.has_reference and isinstance(error, OpenClError)
            if not (experiment.has_reference and isinstance(error, PlannedError)):
                (self.absences if is_lack else self.errors)[name] = str(error)
        finally:
            self._add_time(name, started_s)
        if experiment.has_reference:
            self._go_on(name)

    def _go_on(self, name: str) -> None:
        """Raise what ends a whole run, and note what ended a group."""
        broken_off_by = self.groups[name].broken_off_by if name in self.groups else None
        if isinstance(broken_off_by, SaturatedError):
            self.absences[name] = self.saturated = str(broken_off_by)
        elif isinstance(broken_off_by, MeasurementError):
            self.errors[name] = str(broken_off_by)
        elif broken_off_by is not None:
            raise broken_off_by
        self.held = self.config.board.held()

    def _add_time(self, name: str, started_s: float) -> None:
        self.durations_s[name] = round(self.durations_s.get(name, 0.0) + time.monotonic() - started_s, 3)

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
        """Hold each group's sentinels against those at its beginning, and the ceilings before and after everything."""
        times_ns = self._ceiling_times_ns
        ends_ns = (times_ns[0], times_ns[1]) if len(times_ns) > 1 else None
        self.groups = {name: with_speed_problems(group, ends_ns) for name, group in self.groups.items()}

    def _probe(self, progress: ProgressLine) -> None:
        progress.step("ceilings")
        started_s = time.monotonic()
        with suppress(AskedError):
            self._ceiling_times_ns.append(self.forecasts.probe())
        self.held = self.config.board.held()
        self._add_time("ceilings", started_s)
