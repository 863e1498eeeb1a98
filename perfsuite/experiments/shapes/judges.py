"""The judges of a run's subjects: opened when first asked for, with what is expected of the device, and closed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perfsuite.experiments.run_config import RunConfig
from perfsuite.experiments.shapes.request import HuntRequest
from perfsuite.records.ceilings import Ceilings
from perfsuite.workload.shapes.shape_case import Subject

if TYPE_CHECKING:
    from perfsuite.expectation.shapes.floor import ShapeCeilings, ShapeForecasts
    from perfsuite.experiments.shapes.judge import ShapeJudge

#: The kind whose margin holds for all shapes, hunted and kept.
HUNT = "shape-hunt"

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

    @property
    def _platform(self) -> str | None:
        return self.config.opencl_platform or self.config.profile.opencl_platform

    def _open(self, subject: Subject) -> ShapeJudge:
        from perfsuite.experiments.shapes.judge import MARGIN_RATIO, ShapeJudge
        from perfsuite.experiments.shapes.shape_property import SHAPE_DESIGNS
        from perfsuite.measure.shapes.meters import STEP_LIMIT_S, open_meters  # these bring NumPy and SciPy

        config, request = self.config, self.request
        meters = self._stack.enter_context(
            open_meters(
                subject,
                config.board,
                log_dir=config.run_dir,
                n_threads=config.n_threads,
                platform=self._platform,
                kernels_dir=request.kernels_dir if subject is Subject.TILED else None,
                engine=config.engine,
                limit_s=STEP_LIMIT_S if subject is Subject.GGML_OPENCL else _SHAPE_LIMIT_S,
            )
        )
        _ = meters.resident().description  # starts it: a subject that cannot run is no matter of a shape
        return ShapeJudge(
            meters,
            margin_ratio=config.margins.margin_ratio(HUNT, default=MARGIN_RATIO),
            design=SHAPE_DESIGNS[request.profile],
            ceilings=self._ceilings(subject),
            forecasts=self._forecasts() if subject is Subject.GGML_CPU else None,
        )

    def _ceilings(self, subject: Subject) -> ShapeCeilings | None:
        """Return the processor's ceilings for what runs on it; those of other devices are not measured here."""
        from perfsuite.expectation.shapes.floor import ShapeCeilings

        ceilings = self.ceilings()
        if ceilings is None or (subject is not Subject.GGML_CPU and not self._is_opencl_on_processor()):
            return None
        return ShapeCeilings.of_processor(ceilings, spread_ratio=self.config.profile.ceiling_spread_ratio)

    def _is_opencl_on_processor(self) -> bool:
        from perfsuite.measure.plan import DevicesPlan

        plan = DevicesPlan(platform=self._platform)
        chosen = self.config.board.run(plan, extra_environment=self.config.board.facts().opencl_environment)["chosen"]
        return bool(chosen["type"] == "cpu")

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
