"""The hunts of ``--perf-shapes``: a case for each subject, operation and property, told by one verdict each."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from perfsuite.errors import OpenClError, PerfsuiteError
from perfsuite.expectation.shapes.floor import dimension_steps
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.shapes.bounds import TIMED_BOUNDS
from perfsuite.experiments.shapes.request import HUNT, HuntRequest, TimeShares
from perfsuite.experiments.shapes.shape_property import ShapeProperty, ShapeVerdict
from perfsuite.experiments.shapes.sweep_sizes import size_option
from perfsuite.records.case import Case
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.workload.shapes.operation_shape import Operation, block_values
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

if TYPE_CHECKING:
    from perfsuite.experiments.shapes.experiment import ShapeJudges
    from perfsuite.experiments.shapes.hunt import Hunt


def sweep_command(verdict: ShapeVerdict, device: str, *, platform: str | None = None) -> str:
    """Return the command that sweeps from the shape of a verdict to the one that it was compared with.

    Where the two differ in several dimensions, the sweep runs over one of them: the inner one, or else the growing one.
    A shape that was compared with no other is swept along the growing dimension, one step far.
    """
    case = ShapeCase.from_id(verdict.case_id)
    against = None if verdict.against_id is None else ShapeCase.from_id(verdict.against_id)
    operation = case.operation
    swept = operation.growing_dimension
    last = case.shape.of(swept) + dimension_steps(case)[swept]
    if against is not None:
        order = (operation.inner_dimension, swept, *operation.dimensions)
        larger = ((name, against.shape.of(name)) for name in order if against.shape.of(name) > case.shape.of(name))
        swept, last = next(larger, (swept, last))
    sizes = {name: f"{case.shape.of(name)}" for name in case.operation.dimensions}
    step = block_values(case.shape.type) if swept == case.operation.inner_dimension else 1
    sizes[swept] += f":{last}" if step == 1 else f":{last}:{step}"
    words = [f"perfsuite sweep {case.operation.value} --device {device}"]
    words += [f"--opencl-platform {shlex.quote(platform)}"] if platform is not None else []
    words += [f"--subject {case.subject.value} --type {case.shape.type}"]
    words += [f"--tile {case.tiling.tile} --vector {case.tiling.vector}"] if case.tiling is not None else []
    words += [f"{size_option(name)} {size}" for name, size in sizes.items()]
    return " ".join(words)


#: The properties that every subject must have; ggml's operators on the processor have forecasts besides.
_PROPERTIES = (ShapeProperty.CORRECT, ShapeProperty.PADDING, ShapeProperty.GROWTH, ShapeProperty.CEILING)

#: The properties whose ratio is that of two latencies, new over old.
COMPARED = (ShapeProperty.PADDING, ShapeProperty.GROWTH)


@dataclass(kw_only=True)
class ShapeHunts(Experiment):
    """All hunts of a run."""

    config: RunConfig
    request: HuntRequest
    judges: ShapeJudges
    begun: dict[str, Hunt] = field(default_factory=dict)
    reasons: dict[Subject, str] = field(default_factory=dict)
    #: The hunts that came to an end, by case id: what others have found may not be the smallest yet.
    ended: set[str] = field(default_factory=set)
    kept: list[str] = field(default_factory=list)
    kind: str = HUNT
    _shares: TimeShares = field(default_factory=lambda: TimeShares(left_s=0.0, n_left=0))

    @cached_property
    def aims(self) -> dict[str, tuple[Subject, Operation, ShapeProperty]]:
        return {
            f"{HUNT}/{subject.value}/{operation.value}/{property.value}": (subject, operation, property)
            for subject in self.request.subjects
            for operation in self.request.operations
            for property in (*_PROPERTIES, *([ShapeProperty.CALIBRATED] if subject is Subject.GGML_CPU else []))
        }

    def cases(self) -> Iterator[Case]:
        yield from (Case(case_id=case_id, kind=HUNT) for case_id in self.aims)

    def n_steps(self, case_ids: Collection[str]) -> int:
        return len(self._subjects(case_ids))

    def measure(self, case_ids: Collection[str], progress: ProgressLine) -> None:
        """Start the subjects: shapes are drawn and measured within the tests, for Hypothesis is what asks for them.

        A device without OpenCL is no error of the run; its hunts are INVALID and say so.
        """
        failed: PerfsuiteError | None = None
        for subject in self._subjects(case_ids):
            progress.step(f"shapes, subject {subject.value}")
            try:
                self.judges.of(subject)
            except PerfsuiteError as error:
                self.reasons[subject] = str(error)
                failed = failed if isinstance(error, OpenClError) else error
        n_left = sum(self.aims[case_id][0] not in self.reasons for case_id in case_ids)
        self._shares = TimeShares(left_s=self.request.budget.limit_s, n_left=n_left)
        if failed is not None:
            raise failed

    def hunt(self, case_id: str) -> Hunt | None:
        """Return a hunt, begun when first asked for; None where its subject cannot run."""
        subject = self.aims[case_id][0]
        if case_id not in self.begun and subject not in self.reasons:
            self.begun[case_id] = self._begin(case_id)
        return self.begun.get(case_id)

    def finish(self, case_id: str) -> None:
        """Give the time that a hunt has left to those that follow."""
        if case_id in self.begun:
            self.ended.add(case_id)
            self._shares.finish()

    def judge(self, case_id: str, reason: str) -> Judgement:
        """Tell what a hunt has found: the smallest shape that fails, or how many do not and the worst of them.

        A hunt that was broken off has not found the smallest one, and passes nothing.
        """
        hunt = self.begun.get(case_id)
        if hunt is None:
            return told_judgement(case_id, HUNT, Outcome.INVALID, self.reasons.get(self.aims[case_id][0], reason))
        found = hunt.failing
        change_ratio = found.ratio if found is not None and found.property in COMPARED else None
        is_sound = case_id in self.ended and hunt.error is None and hunt.judged
        outcome = Outcome.PASS if is_sound else Outcome.INVALID
        if found is not None:  # a failure is a fact, whatever came after it
            outcome = found.outcome
        text = self._reason(case_id, hunt) if case_id in self.ended else self._broken_off_reason(case_id)
        return told_judgement(case_id, HUNT, outcome, text, change_ratio)

    def is_measured(self, case_id: str, *, has_ended: bool) -> bool:
        return case_id in self.begun

    def close(self) -> None:
        self.judges.close()

    def keep(self) -> bool:
        """Add the smallest failing shapes to the device's baselines; hunts are kept even where nothing else is."""
        from perfsuite.experiments.shapes.kept import example_of, examples_path, keep

        directory, device = self.config.baseline_dir, self.config.profile.name
        for case_id, verdict in self._failing(have_ended=True).items():
            path, judge = examples_path(directory, device, verdict.case_id), self.judges.of(self.aims[case_id][0])
            is_new = keep(directory, device, example_of(verdict, judge.fingerprint))
            self.kept.append(f"{verdict.case_id}: {'kept in' if is_new else 'is already in'} {path}")
        return True

    def notes(self) -> tuple[str, ...]:
        broken_off = tuple(self._broken_off_reason(case_id) for case_id in self._failing(have_ended=False))
        found = tuple(self._failing(have_ended=True))
        if self.kept or not found:
            return (*self.kept, *broken_off)
        where = self.config.baseline_dir / self.config.profile.name / "shapes"
        kept = "that shape" if len(found) == 1 else f"these {len(found)} shapes"
        return (f"--baseline=record keeps {kept} in {where}, to be reviewed and tried first from then on", *broken_off)

    def _begin(self, case_id: str) -> Hunt:
        from perfsuite.experiments.shapes.hunt import Hunt  # brings Hypothesis, as the strategies do
        from perfsuite.experiments.shapes.strategies import shape_cases

        subject, operation, property = self.aims[case_id]
        bounds = {**(TIMED_BOUNDS[operation] if property is ShapeProperty.CALIBRATED else {}), **self.request.bounds}
        cases = shape_cases(operation, subject=subject, types=self.request.types, bounds=bounds)
        judge, until_s = self.judges.of(subject), self._shares.start()
        return Hunt(bound=property, cases=cases, judge=judge, until_s=until_s, is_accepted=self._accepted(subject))

    def _accepted(self, subject: Subject) -> Callable[[ShapeVerdict], bool]:
        from perfsuite.experiments.shapes.kept import accepted_ratio_of, is_accepted, read_kept

        if self.config.baseline_mode == "off":
            return lambda verdict: False
        kept, judge = read_kept(self.config.baseline_dir, self.config.profile.name), self.judges.of(subject)

        def accepts(verdict: ShapeVerdict) -> bool:
            case = ShapeCase.from_id(verdict.case_id)
            ratio = accepted_ratio_of(kept, case, verdict.property, judge.fingerprint)
            return ratio is not None and is_accepted(verdict, ratio, judge.margin_ratio)

        return accepts

    def _reason(self, case_id: str, hunt: Hunt) -> str:
        if hunt.error is not None:
            return str(hunt.error)
        parts = [f"{len(hunt.judged)} shapes"]
        if hunt.failing is not None:
            parts = [f"{_named(hunt.failing)}: {hunt.failing.reason}", f"the smallest found of {parts[0]}"]
            if self.request.kernels_dir is None or self.aims[case_id][0] is not Subject.TILED:
                sweep = sweep_command(hunt.failing, self.config.profile.name, platform=self.config.opencl_platform)
                parts.append(f"measure again: {sweep}")
            parts.append(f"hunt again: {self.request.command(case_id)}")
            return "; ".join(parts)
        if not hunt.judged:
            parts = ["no shape could be judged"]
        if ratios := [(each.ratio, each) for each in hunt.judged if each.ratio is not None]:
            ratio, worst = max(ratios, key=lambda each: each[0])
            parts.append(f"worst ratio {ratio:.3g} at {_named(worst)}")
        if hunt.accepted:
            parts.append(f"{len(hunt.accepted)} of them fail within what was accepted")
        if n_rejected := hunt.rejected.total():
            parts.append(f"{n_rejected} could not be judged, such as: {hunt.rejected.most_common(1)[0][0]}")
        if hunt.n_left_out:
            parts.append(f"the time was up for {hunt.n_left_out} more")
        return "; ".join(parts)

    def _failing(self, *, have_ended: bool) -> dict[str, ShapeVerdict]:
        """Return by case id what was found; by hunts that were interrupted before it was small, nothing to keep."""
        found = ((case_id, hunt.failing) for case_id, hunt in self.begun.items())
        return {each: failing for each, failing in found if failing is not None and (each in self.ended) is have_ended}

    def _broken_off_reason(self, case_id: str) -> str:
        hunt = self.begun[case_id]
        again = f"hunt again: {self.request.command(case_id)}"
        if hunt.failing is None:
            return f"broken off after {len(hunt.judged)} shapes, none of which fails; {again}"
        return f"broken off at {_named(hunt.failing)}: {hunt.failing.reason}; {again}"

    def _subjects(self, case_ids: Collection[str]) -> tuple[Subject, ...]:
        return tuple(dict.fromkeys(self.aims[case_id][0] for case_id in case_ids))


def _named(verdict: ShapeVerdict) -> str:
    case = ShapeCase.from_id(verdict.case_id)
    return "/".join((case.shape.id, *(() if case.tiling is None else (case.tiling.id,))))
