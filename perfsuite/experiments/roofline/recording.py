"""Measures a whole roofline: ceilings before and after, and the workloads between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from perfsuite import __version__
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.roofline_run import RooflineRun, Row
from perfsuite.expectation.roofline.survey import Survey, merge_surveys
from perfsuite.expectation.roofline.sweeps import BASE, SweepPoint
from perfsuite.experiments.scenario_bench import Bench, measure_memories, measure_rows
from perfsuite.measure.device_survey import SurveyRequest, measure_bounds, survey_device

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRequest:
    """What a roofline is measured of."""

    survey: SurveyRequest
    #: Workloads whose operators are rows as well, and those of which phases alone are.
    base: tuple[SweepPoint, ...]
    sweeps: tuple[SweepPoint, ...]
    bench: Bench
    #: Whether independent programs are asked as well, which may take a minute.
    with_bounds: bool = False


def record_roofline(request: RooflineRequest, progress: Progress) -> RooflineRun:
    """Measure the ceilings, the workloads, and the ceilings again; of each ceiling the best counts.

    A ceiling that was taken in a slow minute would call honest points impossible. `PerfsuiteError` where a probe or a
    worker failed, or a workload was disturbed again and again.
    """
    recorded_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    before = survey_device(request.survey, progress)
    bounds = measure_bounds(request.survey, progress) if request.with_bounds else ()
    base, engine = _measured(request.base, replace(request.bench, records_operators=True), progress)
    sweeps, sweeps_engine = _measured(request.sweeps, request.bench, progress)
    memory = measure_memories(tuple(filter(has_memory, (*request.base, *request.sweeps))), request.bench, progress)
    surveys = (before, *_surveyed_again(request, progress))
    return RooflineRun(
        suite_version=__version__,
        recorded_at=recorded_at,
        device=request.survey.profile.name,
        engine=engine or sweeps_engine,
        fingerprint=request.survey.board.facts().fingerprint,
        n_threads=request.survey.n_threads,
        survey=merge_surveys(surveys),
        rows=(*base, *sweeps),
        memory=memory,
        bounds=bounds,
    )


def _surveyed_again(request: RooflineRequest, progress: Progress) -> tuple[Survey, ...]:
    try:
        return (survey_device(request.survey, progress),)
    except PerfsuiteError as error:
        progress(f"the ceilings were not measured again: {error}")
        return ()


def has_memory(point: SweepPoint) -> bool:
    """Whether the memory of a workload is measured: of those that no sweep varies, and of the scenarios."""
    return point.sweep in (BASE, "scenario")


def _measured(points: Sequence[SweepPoint], bench: Bench, progress: Progress) -> tuple[tuple[Row, ...], str]:
    return measure_rows(points, bench, progress) if points else ((), "")
