"""A run as the page takes it: its record, what it saw, and where both lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.records.observation import Observation, read_observation
from perfsuite.records.outcome import Judgement
from perfsuite.records.run_file import RUN_NAME, RunFile, read_run_file, run_path
from perfsuite.report.engine_words import commit_title, engine_words
from perfsuite.report.page.words import capitalized, commit_words, when_words
from perfsuite.report.verdict_words import counts_words, verdict_sentence
from perfsuite.report.visible import isolated_name


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRun:
    """One of the runs that a page is about."""

    run: RunFile
    observation: Observation
    #: Its ``run.json``.
    path: Path


def read_page_run(named: Path) -> PageRun:
    """Read a run, named by its folder or its ``run.json``, with what is beside it.

    Raises PerfsuiteError where there is no run, or it cannot be used; of a folder of runs the message names the newest.
    """
    _refuse_folder_of_runs(named)
    path = run_path(named)
    return PageRun(run=read_run_file(path), observation=read_observation(path.parent), path=path)


def _refuse_folder_of_runs(named: Path) -> None:
    if not named.is_dir() or (named / RUN_NAME).exists():
        return
    runs = sorted(named.glob(f"*/{RUN_NAME}"), key=lambda path: (path.stat().st_mtime, path))
    if runs:
        raise PerfsuiteError(f"{named}: is a folder of runs, expected one run; the newest is {runs[-1].parent}")
    raise PerfsuiteError(f"{named}: holds no {RUN_NAME}; name the folder or the {RUN_NAME} of a run")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One of the runs of the page."""

    #: As the tables call it.
    label: str
    verdict: str
    facts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRun:
    """A run beside the reported one, with its cases by id."""

    label: str
    run: RunFile
    cases: Mapping[str, Judgement]


def run_labels(n_runs: int) -> tuple[str, ...]:
    """Return what the runs are called, the reported one first."""
    return ("this run", *(f"run {number}" for number in range(2, n_runs + 1)))


def other_runs(runs: Sequence[PageRun]) -> tuple[OtherRun, ...]:
    """Return all runs but the first."""
    labels = run_labels(len(runs))
    return tuple(
        OtherRun(label=label, run=each.run, cases={case.case_id: case for case in each.run.judgements})
        for label, each in zip(labels[1:], runs[1:], strict=True)
    )


def run_lines(runs: Sequence[PageRun]) -> tuple[RunLine, ...]:
    """Return a line for each run, the reported one first; none where there is no other."""
    if len(runs) < 2:
        return ()
    reported = runs[0].run
    return tuple(_line(label, each, reported) for label, each in zip(run_labels(len(runs)), runs, strict=True))


def _line(label: str, page_run: PageRun, reported: RunFile) -> RunLine:
    run, board = page_run.run, page_run.run.origin.board
    facts = {
        "Measured": when_words(run.started_at),
        "Device": f"{run.device}, board {board.text}" if board and board.is_linked else run.device,
        "Workload": run.workload,
        "Engine": engine_words(run.subjects),
        commit_title(run.origin): commit_words(run),
        "Outcomes": counts_words(run.judgements) or "nothing was measured",
        "Differs in": ", ".join(_differences(run, reported)) or "nothing but its times",
        "File": str(page_run.path),
    }
    if run is reported:
        del facts["Differs in"]
    verdict = capitalized(verdict_sentence(run, named=isolated_name))
    return RunLine(label=label, verdict=verdict, facts=facts)


def _differences(run: RunFile, reported: RunFile) -> Iterator[str]:
    """Name the device, board, workload, fields of fingerprints and number of cases, where they are not the same."""
    if run.device != reported.device:
        yield "device"
    if run.origin.kept_by != reported.origin.kept_by:
        yield "board"
    if run.workload != reported.workload:
        yield "workload"
    for group in sorted(run.fingerprints.keys() & reported.fingerprints.keys()):
        one, other = run.fingerprints[group], reported.fingerprints[group]
        yield from (f"{group} {name}" for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name))
    shared = Counter(each.case_id for each in run.judgements) & Counter(each.case_id for each in reported.judgements)
    if len(shared) < len(reported.judgements):
        yield f"lacks {len(reported.judgements) - len(shared)} of the cases"
