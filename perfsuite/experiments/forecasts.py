"""What the cases of a run are expected to take: by ceilings that it probes, and by a calibration where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from perfsuite.errors import LinkError, MeasurementError, PerfsuiteError
from perfsuite.expectation.forecast import expect, with_forecast
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.expectation.timing.calibration_plan import CalibrationPlan, quick_plan
from perfsuite.expectation.timing.engine_times import EngineTimes, TimeForecast, case_forecasts
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.protocol import board_name
from perfsuite.measure.calibrate import CalibrationRun, calibrate
from perfsuite.measure.ceiling_store import best_of_board, find_calibration, measured_ceilings, store_calibration
from perfsuite.measure.engine import Engine
from perfsuite.measure.probes import COMPUTE_FLOPS
from perfsuite.records.case import Case, Expectation
from perfsuite.records.ceilings import Ceilings, merge_ceilings
from perfsuite.records.events import TOKEN_PHASES
from perfsuite.units import NS_PER_S


@dataclass
class Forecasts:
    """The expectations of one run."""

    config: RunConfig
    #: What the forecasts stand on; None leaves them to the ceilings.
    calibration: Calibration | None = None
    #: The quick calibration that the run lacks and is to make; None where it needs none.
    lacking: CalibrationPlan | None = None
    #: By case id, from the calibration; empty without one.
    calibrated: Mapping[str, TimeForecast] = field(default_factory=dict)
    #: What a reader should know of them.
    notes: tuple[str, ...] = ()
    ceilings: Ceilings | None = None
    #: The best that this device has shown in any run: what floors rest on.
    best_ceilings: Ceilings | None = field(default=None)

    def __post_init__(self) -> None:
        """Forecast the cases by the calibration that was found."""
        self._use(self.calibration)

    @property
    def n_steps(self) -> int:
        """The steps that the quick calibration takes."""
        return 0 if self.lacking is None else self.lacking.n_steps

    def calibrate(self, progress: Callable[[str], None]) -> None:
        """Make the quick calibration that is lacking, and keep it; where it fails the ceilings forecast, with a note.

        Raises LinkError: the device is lost.
        """
        if self.lacking is None:
            return
        config, plan, self.lacking = self.config, self.lacking, None
        run = CalibrationRun(
            board=config.board,
            engine=calibrated_engine(config),
            profile=config.profile,
            n_threads=config.n_threads,
            plan=plan,
        )
        try:
            self._use(calibrate(run, lambda step: progress(f"a quick calibration, {step}")))
            self._keep(plan)
        except LinkError:
            raise
        except PerfsuiteError as error:
            self.notes += (f"quick calibration: {error}; until there is one, ceilings alone forecast",)

    def _keep(self, plan: CalibrationPlan) -> None:
        """Keep the quick calibration for the next run, unless nothing of the device can be trusted."""
        config = self.config
        if self.calibration is not None and not config.board.held().problems:
            store_calibration(
                self.calibration,
                calibrated_engine(config).build_id,
                config.cache_dir,
                board=board_name(config.board).kept_by,
                quick_for=plan.contents,
            )

    def _use(self, calibration: Calibration | None) -> None:
        self.calibration = calibration
        if calibration is not None:
            self.calibrated = case_forecasts(self.config.workload, EngineTimes(calibration))

    def probe(self) -> int:
        """Measure the ceilings, or once more; the best of every rate counts.

        Return what the compute sentinel would take at what was measured now, ns.
        """
        board = self.config.board
        measured = measured_ceilings(board, self.config.n_threads)
        self.ceilings = measured if self.ceilings is None else merge_ceilings((self.ceilings, measured))
        self.best_ceilings = best_of_board(board, self.ceilings, self.config.cache_dir)
        return max(1, round(COMPUTE_FLOPS * NS_PER_S / measured.fp32_flops_per_s))

    def expectation(self, case: Case) -> Expectation:
        """Forecast a case: by the calibration where it knows the case, else by the ceilings alone.

        What OpenCL computes on the processor has the processor's ceilings, and no limit: how near a runtime's compiler
        comes to them is for the baseline to say. On another device they are no ceilings.
        """
        profile, opencl = self.config.profile, self.config.opencl
        on_opencl = opencl is not None and case.kind != "kernel" and case.phase not in TOKEN_PHASES
        if opencl is not None and on_opencl and not opencl.device.is_cpu:
            return Expectation()
        expectation = expect(
            case.costs,
            self.ceilings,
            self.best_ceilings,
            tolerance_ratio=None if on_opencl else profile.forecast_tolerance_ratio.get(case.kind),
            least_ns=profile.forecast_least_ns,
            spread_ratio=profile.ceiling_spread_ratio,
        )
        forecast = self.calibrated.get(case.case_id)
        if forecast is None:
            return expectation
        is_quick = self.calibration is not None and self.calibration.is_quick
        tolerance_ratio = profile.quick_tolerance_ratio if is_quick else profile.calibrated_tolerance_ratio
        return with_forecast(
            expectation, forecast, tolerance_ratio=tolerance_ratio.get(case.kind), least_ns=profile.forecast_least_ns
        )

    @property
    def description(self) -> str:
        """Say on what the forecasts stand, for the header of a run."""
        if self.config.opencl is not None:
            return "ceilings alone, which the OpenCL backend has no calibration beside"
        if self.lacking is not None:
            return "a quick calibration, which is made before phases and operators are measured"
        if self.calibration is None:
            return "ceilings alone; 'perfsuite calibrate' makes them many times sharper"
        if self.calibration.is_quick:
            return f"a quick calibration of {self.calibration.recorded_at}; 'perfsuite calibrate' makes them sharper"
        return f"calibration of {self.calibration.recorded_at}"


def open_forecasts(config: RunConfig, *, asks_board: bool = True) -> Forecasts:
    """Read the calibration of this device, engine and number of threads, or plan a quick one where none is stored here.

    A comparison with a side that an option names makes none. Without asking the board, as where cases are only listed,
    none is looked for.

    Raises MeasurementError: the stored calibration cannot be read.
    """
    if config.backend != "cpu" or not asks_board:
        return Forecasts(config=config)
    calibration = stored_calibration(config)
    if calibration is not None or not config.quick_calibration or not config.workload.has_graph:
        return Forecasts(config=config, calibration=calibration)
    plan = quick_plan(config.workload, config.cache_dir / "models")
    stored = _stored_quick(config, plan)
    return Forecasts(
        config=config, calibration=stored, lacking=None if stored is not None or config.is_against else plan
    )


def calibrated_engine(config: RunConfig) -> Engine:
    """Return the engine whose single operators forecasts rest on: that of the baseline, where it is measured again.

    A calibration of the very build that is judged would forecast its regressions.
    """
    return (config.old or config).engine


def stored_calibration(config: RunConfig, *, quick_for: str | None = None) -> Calibration | None:
    """Return the calibration of the very board of a run, its engine and its number of threads; None without one.

    `quick_for` is what a quick one measured; a whole one is looked for without it.

    Raises MeasurementError: it cannot be read.
    """
    return find_calibration(
        config.board.facts().fingerprint,
        calibrated_engine(config).build_id,
        config.n_threads,
        config.cache_dir,
        board=board_name(config.board).kept_by,
        quick_for=quick_for,
    )


def _stored_quick(config: RunConfig, plan: CalibrationPlan) -> Calibration | None:
    """Return the quick calibration of a plan; one that cannot be read is made anew."""
    try:
        return stored_calibration(config, quick_for=plan.contents)
    except MeasurementError:
        return None
