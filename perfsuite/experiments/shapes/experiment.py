"""``--perf-shapes``: hunts for shapes that break a property, and the shapes that earlier hunts have kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.shapes.hunts import COMPARED, ShapeHunts
from perfsuite.experiments.shapes.judges import ShapeJudges
from perfsuite.experiments.shapes.request import HuntRequest
from perfsuite.experiments.shapes.shape_property import ShapeVerdict
from perfsuite.records.case import Case
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.workload.shapes.shape_case import SHAPE

if TYPE_CHECKING:
    from perfsuite.experiments.shapes.kept_files import KeptShape


KEPT = "shape-kept"


@dataclass(kw_only=True)
class KeptShapes(Experiment):
    """The kept shapes of what is hunted."""

    #: By case id, those of several benches together.
    shapes: dict[str, list[KeptShape]]
    judges: ShapeJudges
    verdicts: dict[str, ShapeVerdict] = field(default_factory=dict)
    #: Why a shape could not be judged, by case id.
    reasons: dict[str, str] = field(default_factory=dict)
    kind: str = KEPT

    def cases(self) -> Iterator[Case]:
        yield from (Case(case_id=case_id, kind=KEPT) for case_id in self.shapes)

    def n_steps(self, case_ids: Collection[str]) -> int:
        return len(case_ids)

    def measure(self, case_ids: Collection[str], progress: ProgressLine) -> None:
        for case_id in case_ids:
            progress.step(case_id)
            try:
                self.verdicts[case_id] = self._verdict(self.shapes[case_id])
            except PerfsuiteError as error:
                self.reasons[case_id] = str(error)

    def judge(self, case_id: str, reason: str) -> Judgement:
        verdict = self.verdicts.get(case_id)
        if verdict is None:
            return told_judgement(case_id, KEPT, Outcome.INVALID, self.reasons.get(case_id, reason))
        change_ratio = verdict.ratio if verdict.property in COMPARED else None
        return told_judgement(case_id, KEPT, verdict.outcome, verdict.reason, change_ratio)

    def _verdict(self, shapes: list[KeptShape]) -> ShapeVerdict:
        from perfsuite.experiments.shapes.kept import judge_kept  # brings SciPy, as what it needs
        from perfsuite.experiments.shapes.kept_files import bench_of

        judge = self.judges.of(shapes[0].case.subject)
        bench = bench_of(judge.fingerprint)
        here = [each for each in shapes if bench_of(each.example.fingerprint) == bench]
        return judge_kept(judge, (here or shapes)[0])


def open_kept(config: RunConfig, request: HuntRequest, judges: ShapeJudges) -> KeptShapes:
    """Read the kept shapes of what is hunted; `BaselineError` where a file cannot be read."""
    if config.baseline_mode == "off":
        return KeptShapes(shapes={}, judges=judges)
    from perfsuite.experiments.shapes.kept_files import read_kept

    found: dict[str, list[KeptShape]] = {}
    for kept in read_kept(config.baseline_dir, config.profile.name):
        if kept.case.subject in request.subjects and kept.case.operation in request.operations:
            place = kept.case.case_id.removeprefix(f"{SHAPE}/")
            found.setdefault(f"{KEPT}/{place}/{kept.property.value}", []).append(kept)
    return KeptShapes(shapes=found, judges=judges)


def open_experiments(config: RunConfig, forecasts: Forecasts, *_: object) -> tuple[Experiment, ...]:
    """Return the kept shapes and the hunts; `PerfsuiteError` where what was kept cannot be read."""
    assert config.shapes is not None, "nobody asked for shapes"
    judges = ShapeJudges(config=config, request=config.shapes, ceilings=lambda: forecasts.best_ceilings)
    hunts = ShapeHunts(config=config, request=config.shapes, judges=judges)
    return open_kept(config, config.shapes, judges), hunts
