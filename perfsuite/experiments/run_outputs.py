"""Writes what a run leaves behind: ``run.json`` first, then what can be made again from it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from perfsuite import __version__
from perfsuite.expectation.roofline.point import work_of
from perfsuite.experiments.run_config import OutputRequest
from perfsuite.experiments.session import PerfSession
from perfsuite.records.case import Case
from perfsuite.records.history_place import HistoryPlace
from perfsuite.records.observation import OBSERVATION_NAME, CaseWork, Observation, write_observation
from perfsuite.records.outcome import Attribution
from perfsuite.records.run_file import RunFile
from perfsuite.report.run_writer import write_run
from perfsuite.verdict.attribution import attribute


def run_file(session: PerfSession) -> RunFile:
    """Gather what ``run.json`` holds."""
    config, measured, groups = session.config, session.measured, session.groups
    return RunFile(
        suite_version=__version__,
        started_at=session.started_at,
        device=config.profile.name,
        workload=config.workload.prefix,
        subjects=session.subjects(),
        fingerprints={name: dict(group.fingerprint) for name, group in groups.items()},
        ceilings=session.forecasts.ceilings,
        durations_s=measured.durations_s,
        operator_share_ratio={
            phase: share for group in groups.values() for phase, share in group.operator_share_ratio.items()
        },
        joules_per_token={
            phase: joules for group in groups.values() for phase, joules in group.joules_per_token.items()
        },
        n_discarded_replicates={name: group.n_discarded for name, group in groups.items()},
        sentinels_ns={name: group.sentinels_ns for name, group in groups.items()},
        covariates={name: group.covariates for name, group in groups.items()},
        outputs={name: group.outputs[0] for name, group in groups.items() if group.outputs},
        device_notes=measured.notes,
        is_injected=bool(config.inject_op or config.inject_phases),
        is_interrupted=session.is_interrupted,
        peak_rss_bytes=max((group.peak_rss_bytes or 0 for group in groups.values()), default=0) or None,
        judgements=tuple(session.judgements.values()),
        against=config.old_text if config.is_against else None,
        engines=session.stored.kept_engines,
        attribution=attribution(session),
        origin=config.origin,
    )


def attribution(session: PerfSession) -> Attribution:
    """Say where the time of the phases went, and whether everything moved alike."""
    return attribute(session.judgements.values(), margin_ratio=session.config.margins.margin_ratio("phase"))


def observation(session: PerfSession) -> Observation:
    """Gather what ``observation.json`` holds: the groups' own, and the work of the cases that were judged."""
    found = [group.observation for group in session.groups.values()]
    judged = (session.cases[case_id] for case_id in session.judgements if case_id in session.cases)
    states = chain.from_iterable(each.states for each in found)
    return Observation(
        tokens=tuple(chain.from_iterable(each.tokens for each in found)),
        timelines=tuple(chain.from_iterable(each.timelines for each in found)),
        graphs=tuple(chain.from_iterable(each.graphs for each in found)),
        works=tuple(_works(judged)),
        states=tuple(sorted(states, key=lambda each: each.at_s)),
    )


def _works(cases: Iterable[Case]) -> Iterator[CaseWork]:
    """Yield the work of the cases whose cost is known, as the roofline counts it.

    The traffic of a phase is parameters and the KV cache; that of all others includes activations (`Work`).
    """
    for case in cases:
        work = work_of(case.costs, counts_activations=case.kind != "phase")
        if work.parts:
            yield CaseWork(case_id=case.case_id, flops=work.flops, moved_bytes=work.traffic_bytes)


#: What the report is called in the run's folder.
REPORT_NAME = "report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRun:
    """What was written, and what was not."""

    #: ``run.json``.
    run_path: Path
    #: None where none was asked for, or none could be made.
    report_path: Path | None
    #: A line for each thing that could not be written, with what to do about it.
    complaints: tuple[str, ...]


def write_outputs(session: PerfSession) -> WrittenRun:
    """Write a finished run; what fails after ``run.json`` is a complaint, and neither loses it nor changes a verdict.

    Raises MeasurementError: ``run.json`` cannot be written.
    """
    run, seen, request = run_file(session), observation(session), session.config.outputs
    run_path = write_run(run, session.config.run_dir)
    folder = run_path.parent
    again = shlex.quote(str(folder))
    unseen = _observed(seen, folder)
    unreported = _reported(run, seen, run_path, f"make it with 'perfsuite report {again}'", request)
    unkept = _kept(run, request, f"add it with 'perfsuite history add {again}'")
    is_reported = request.writes_report and unreported is None
    return WrittenRun(
        run_path=run_path,
        report_path=folder / REPORT_NAME if is_reported else None,
        complaints=tuple(filter(None, (unseen, unreported, unkept))),
    )


def write_report(run: RunFile, seen: Observation, run_path: Path) -> Path:
    """Write the page of a run beside its file."""
    from perfsuite.report.page.page_run import PageRun
    from perfsuite.report.page.render import write_page  # brings Jinja2, which a run that only measures does not need

    return write_page([PageRun(run=run, observation=seen, path=run_path)], run_path.parent / REPORT_NAME)


def append_history(run: RunFile, place: HistoryPlace) -> Path | str:
    """Add a run to the history."""
    from perfsuite.report.history import append_run  # brings DuckDB, as above

    return append_run(run, place)


def _observed(seen: Observation, folder: Path) -> str | None:
    """Write what was seen; the file of a run that went into the same folder before does not stay beside this one's."""

    def write() -> None:
        (folder / OBSERVATION_NAME).unlink(missing_ok=True)
        write_observation(seen, folder)

    return _tried(OBSERVATION_NAME, write, "the report has what it would hold")


def _reported(run: RunFile, seen: Observation, run_path: Path, advice: str, request: OutputRequest) -> str | None:
    """Write the page, in the place of an earlier run's; where none is asked for, the earlier one goes all the same."""

    def write() -> None:
        (run_path.parent / REPORT_NAME).unlink(missing_ok=True)
        if request.writes_report:
            write_report(run, seen, run_path)

    return _tried(REPORT_NAME, write, advice if request.writes_report else "the file there is not of this run")


def _kept(run: RunFile, request: OutputRequest, advice: str) -> str | None:
    """Add a run to the history; one that was broken off, or has no case, is no point of a trend."""
    place = request.history
    if place is None or run.is_interrupted or not run.judgements:
        return None
    return _tried(f"history in {place}", lambda: append_history(run, place), advice)


def _tried(what: str, write: Callable[[], object], advice: str) -> str | None:
    """Write something; return a line that says why it cannot be, and what to do."""
    try:
        write()
    except Exception as error:  # the run is measured and judged: not even a defect of a writer may take that away
        told = str(error).splitlines() or [type(error).__name__]
        return f"{what}: not written ({told[0]}); {advice}"
    except KeyboardInterrupt:  # somebody who does not wait for it can have it later
        return f"{what}: not written (interrupted); {advice}"
    return None
