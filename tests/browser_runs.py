"""Runs of every sort that a report may be about, made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from perfsuite.records.observation import NO_OBSERVATION, Observation, write_observation
from perfsuite.records.outcome import NO_ATTRIBUTION, Attribution, Judgement, Outcome, UniformShift
from perfsuite.records.run_file import RunFile
from perfsuite.report.page.page_run import read_page_run
from perfsuite.report.page.render import write_page
from perfsuite.report.run_writer import write_run
from perfsuite.testing.run_files import synthetic_observation, synthetic_run

#: Enough for every kind and every outcome.
N_CASES = 80


def usual_run() -> RunFile:
    return synthetic_run(n_cases=N_CASES)


def empty_run() -> RunFile:
    return replace(synthetic_run(n_cases=0), attribution=NO_ATTRIBUTION)


def new_run() -> RunFile:
    return _retold(synthetic_run(n_cases=N_CASES, n_regressed=0, against=None), _as_new)


def undecided_run() -> RunFile:
    return _retold(synthetic_run(n_cases=N_CASES, n_regressed=0), _as_undecided)


def shifted_run() -> RunFile:
    """Return a run in which phases and operators are all slower by one ratio."""
    run = _retold(synthetic_run(n_cases=54, n_regressed=0), _as_shifted)
    return replace(run, attribution=Attribution(uniform_shift=UniformShift(ratio=1.12, n_cases=50)))


#: By name: every sort, and whether it comes with what was seen beside the times.
SORTS: dict[str, tuple[Callable[[], RunFile], bool]] = {
    "usual": (usual_run, True),
    "empty": (empty_run, False),
    "new": (new_run, True),
    "undecided": (undecided_run, True),
    "shifted": (shifted_run, True),
}


def write_report(folder: Path, run: RunFile, observation: Observation = NO_OBSERVATION, *others: RunFile) -> Path:
    """Write runs as files, read them again, and make a page of them as the command does."""
    for place, each in enumerate((run, *others)):
        write_run(each, _home(folder, place))
    write_observation(observation, _home(folder, 0))
    page_runs = [read_page_run(_home(folder, place)) for place in range(1 + len(others))]
    return write_page(page_runs, folder / "report.html")


def sort_report(folder: Path, name: str) -> Path:
    make, is_observed = SORTS[name]
    run = make()
    return write_report(folder, run, synthetic_observation(run) if is_observed else NO_OBSERVATION)


def _home(folder: Path, place: int) -> Path:
    home = folder / f"run-{place}"
    home.mkdir(parents=True, exist_ok=True)
    return home


def _retold(run: RunFile, retell: Callable[[Judgement], Judgement]) -> RunFile:
    told = tuple(retell(each) for each in run.judgements if each.measured_ns is not None)
    return replace(run, judgements=told, attribution=NO_ATTRIBUTION)


def _as_new(judgement: Judgement) -> Judgement:
    reason = "no baseline yet; record one with --baseline=record"
    return replace(judgement, outcome=Outcome.NEW, reason=reason, baseline_ns=None, change_ratio=None)


def _as_undecided(judgement: Judgement) -> Judgement:
    reason = "+1.0 % (-6.0 % to +8.0 %), margin 2 %; about 20 more pairs would decide"
    bounds = {"change_ratio": 1.01, "lower_ratio": 0.94, "upper_ratio": 1.08, "n_pairs": 10, "n_more_pairs": 20}
    bounds |= {"smallest_effect_ratio": 1.126}
    return replace(judgement, outcome=Outcome.INCONCLUSIVE, reason=reason, **bounds)  # type: ignore[arg-type]


def _as_shifted(judgement: Judgement) -> Judgement:
    reason = "+12.0 % (+10.8 % to +13.2 %), margin 5 %"
    return replace(judgement, outcome=Outcome.REGRESSED, change_ratio=1.12, reason=reason)
