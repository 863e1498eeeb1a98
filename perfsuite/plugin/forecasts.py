"""What the cases of a run are expected to take: ceilings probed in the run, and a calibration where one is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfsuite.expectation.cases import Case
from perfsuite.expectation.ceilings import Ceilings, merge_ceilings
from perfsuite.expectation.forecast import Expectation, expect, with_forecast
from perfsuite.expectation.timing.calibration import Calibration
from perfsuite.expectation.timing.case_times import case_forecasts
from perfsuite.expectation.timing.engine_times import EngineTimes, TimeForecast
from perfsuite.measure.board.naming import board_name
from perfsuite.measure.calibration_store import find_calibration
from perfsuite.measure.ceiling_probe import best_of_board, measured_ceilings
from perfsuite.plugin.options import RunConfig
from perfsuite.records.events import Phase

#: Phases that the processor computes on every backend.
_ON_THE_PROCESSOR = (Phase.COPY, Phase.SOFTMAX, Phase.SAMPLING)


@dataclass
class Forecasts:
    """The expectations of one run."""

    config: RunConfig
    #: By case id, from the calibration; empty without one.
    calibrated: Mapping[str, TimeForecast]
    #: When the calibration was recorded.
    calibrated_at: str | None = None
    ceilings: Ceilings | None = None
    #: The best that this device has shown in any run: what floors rest on.
    best_ceilings: Ceilings | None = field(default=None)

    def probe(self) -> Ceilings:
        """Measure the ceilings, or once more, and return them; the best of every rate counts."""
        board = self.config.board
        measured = measured_ceilings(board, self.config.n_threads)
        self.ceilings = measured if self.ceilings is None else merge_ceilings((self.ceilings, measured))
        self.best_ceilings = best_of_board(board, self.ceilings, self.config.cache_dir)
        return measured

    def expectation(self, case: Case) -> Expectation:
        """Forecast a case: by the calibration where it knows the case, else by the ceilings alone.

        What OpenCL computes on the processor has the processor's ceilings, and no limit: how near a runtime's compiler
        comes to them is for the baseline to say. On another device they are no ceilings.
        """
        profile, opencl = self.config.profile, self.config.opencl
        on_opencl = opencl is not None and case.kind != "kernel" and case.phase not in _ON_THE_PROCESSOR
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
        return with_forecast(
            expectation,
            forecast,
            tolerance_ratio=profile.calibrated_tolerance_ratio.get(case.kind),
            least_ns=profile.forecast_least_ns,
        )

    @property
    def description(self) -> str:
        """Say on what the forecasts stand, for the header of a run."""
        if self.config.opencl is not None:
            return "ceilings alone, which the OpenCL backend has no calibration beside"
        if self.calibrated_at is None:
            return "ceilings alone; 'perfsuite calibrate' makes them many times sharper"
        return f"calibration of {self.calibrated_at}"


def open_forecasts(config: RunConfig, *, asks_board: bool = True) -> Forecasts:
    """Read the calibration of this device, engine and number of threads, where one is stored here.

    Without asking the board, as where cases are only listed, none is looked for.

    Raises
    ------
    MeasurementError
        The stored calibration cannot be read.
    """
    on_cpu = config.backend == "cpu" and config.old is None
    calibration = stored_calibration(config) if on_cpu and asks_board else None
    if calibration is None:
        return Forecasts(config=config, calibrated={})
    calibrated = case_forecasts(config.workload, EngineTimes(calibration))
    return Forecasts(config=config, calibrated=calibrated, calibrated_at=calibration.recorded_at)


def stored_calibration(config: RunConfig) -> Calibration | None:
    """Return the calibration of the very board of a run, its engine and its number of threads; None without one.

    Raises
    ------
    MeasurementError
        It cannot be read.
    """
    return find_calibration(
        config.board.facts().fingerprint,
        config.engine.build_id,
        config.n_threads,
        config.cache_dir,
        board=board_name(config.board).kept_by,
    )
