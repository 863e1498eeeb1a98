"""``--perf-shapes``: hunts for shapes that break a property, and the shapes that earlier hunts have kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.forecasts import Forecasts
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.protocol import Experiment
from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.shapes.hunts import COMPARED, ShapeHunts
from perfsuite.experiments.shapes.request import HUNT, HuntRequest
from perfsuite.experiments.shapes.shape_property import ShapeVerdict
from perfsuite.records.case import Case
from perfsuite.records.ceilings import Ceilings
from perfsuite.records.outcome import Judgement, Outcome, told_judgement
from perfsuite.workload.shapes.shape_case import SHAPE, Subject

if TYPE_CHECKING:
    from perfsuite.expectation.shapes.floor import ShapeForecasts
    from perfsuite.experiments.shapes.judge import ShapeJudge
    from perfsuite.experiments.shapes.kept import KeptShape


KEPT = "shape-kept"

#: The longest that a shape may take before its process is said to hang; ggml's OpenCL kernels compile for longer.
_SHAPE_LIMIT_S = 60.0


@dataclass(kw_only=True)
class ShapeJudges:
    """One judge a subject for the whole session, so that its verdicts are facts."""

    config: RunConfig
    request: HuntRequest
    #: The best that the processor has shown, once it was probed.
    ceilings: Callable[[], Ceilings | None]
    _opened: dict[Subject, ShapeJudge] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def of(self, subject: Subject) -> ShapeJudge:
        """Return the judge of a subject, its process started; `PerfsuiteError` where the subject cannot run here."""
        if subject not in self._opened:
            self._opened[subject] = self._open(subject)
        return self._opened[subject]

    def close(self) -> None:
        self._stack.close()
        self._opened.clear()

    def _open(self, subject: Subject) -> ShapeJudge:
        from perfsuite.experiments.shapes.judge import MARGIN_RATIO, ShapeJudge
        from perfsuite.measure.shapes.meters import STEP_LIMIT_S, open_meters  # these bring NumPy and SciPy

        config, request = self.config, self.request
        platform = config.opencl_platform or config.profile.opencl_platform
        meters = self._stack.enter_context(
            open_meters(
                subject,
                config.board,
                log_dir=config.run_dir,
                n_threads=config.n_threads,
                platform=platform,
                kernels_dir=request.kernels_dir if subject is Subject.TILED else None,
                engine=config.engine,
                limit_s=STEP_LIMIT_S if subject is Subject.GGML_OPENCL else _SHAPE_LIMIT_S,
            )
        )
        _ = meters.resident().description  # starts it: a subject that cannot run is no matter of a shape
        ceilings, is_processor = self.ceilings(), subject is Subject.GGML_CPU
        if ceilings is not None and not is_processor and not self._is_opencl_on_processor(platform):
            ceilings = None  # those of other devices are not measured here
        return ShapeJudge(
            meters,
            margin_ratio=config.margins.margin_ratio(HUNT, default=MARGIN_RATIO),
            budget=request.budget,
            ceilings=ceilings,
            ceiling_spread_ratio=config.profile.ceiling_spread_ratio,
            forecasts=self._forecasts() if is_processor else None,
        )

    def _is_opencl_on_processor(self, platform: str | None) -> bool:
        from perfsuite.measure.plan import DevicesPlan

        plan, environment = DevicesPlan(platform=platform), self.config.board.facts().opencl_environment
        return bool(self.config.board.run(plan, extra_environment=environment)["chosen"]["type"] == "cpu")

    def _forecasts(self) -> ShapeForecasts | None:
        from perfsuite.expectation.shapes.floor import ShapeForecasts
        from perfsuite.expectation.timing.engine_times import EngineTimes
        from perfsuite.experiments.forecasts import stored_calibration

        profile, calibration = self.config.profile, stored_calibration(self.config)
        tolerance_ratio = profile.calibrated_tolerance_ratio.get("operator")
        if calibration is None or tolerance_ratio is None:
            return None
        times, least_ns = EngineTimes(calibration).operators, profile.forecast_least_ns
        return ShapeForecasts(times=times, tolerance_ratio=tolerance_ratio, least_ns=least_ns)


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
        from perfsuite.experiments.shapes.kept import bench_of, judge_kept

        judge = self.judges.of(shapes[0].case.subject)
        bench = bench_of(judge.fingerprint)
        here = [each for each in shapes if bench_of(each.example.fingerprint) == bench]
        return judge_kept(judge, (here or shapes)[0])


def open_kept(config: RunConfig, request: HuntRequest, judges: ShapeJudges) -> KeptShapes:
    """Read the kept shapes of what is hunted; `BaselineError` where a file cannot be read."""
    if config.baseline_mode == "off":
        return KeptShapes(shapes={}, judges=judges)
    from perfsuite.experiments.shapes.kept import read_kept

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
