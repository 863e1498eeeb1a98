"""A run as the page takes it: its record, what it saw, and where both lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import PerfsuiteError
from perfsuite.records.observation import Observation, read_observation
from perfsuite.records.run_file import RUN_NAME, RunFile, read_run_file, run_path
from perfsuite.report.verdict_words import counts_words, verdict_sentence
from perfsuite.report.words import capitalized, commit_title, commit_words, engine_words, when_words


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
    if named.is_dir() and not (named / RUN_NAME).exists():
        if runs := sorted(named.glob(f"*/{RUN_NAME}"), key=lambda path: (path.stat().st_mtime, path)):
            raise PerfsuiteError(f"{named}: is a folder of runs, expected one run; the newest is {runs[-1].parent}")
        raise PerfsuiteError(f"{named}: holds no {RUN_NAME}; name the folder or the {RUN_NAME} of a run")
    path = run_path(named)
    return PageRun(run=read_run_file(path), observation=read_observation(path.parent), path=path)


def run_labels(n_runs: int) -> tuple[str, ...]:
    """Return what the runs are called, the reported one first."""
    return ("this run", *(f"run {number}" for number in range(2, n_runs + 1)))


def run_lines(runs: Sequence[PageRun]) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield each run's label, verdict and facts, the reported one first; nothing where there is no other."""
    if len(runs) < 2:
        return
    reported = runs[0].run
    for label, page_run in zip(run_labels(len(runs)), runs, strict=True):
        run, board = page_run.run, page_run.run.origin.board
        facts = {
            "Measured": when_words(run.started_at),
            "Device": f"{run.device}, board {board.text}" if board and board.is_linked else run.device,
            "Workload": run.workload,
            "Engine": engine_words(run.subjects),
            commit_title(run.origin): commit_words(run),
            "Outcomes": counts_words(run.judgements) or "nothing was measured",
        }
        if run is not reported:
            facts["Differs in"] = ", ".join(_differences(run, reported)) or "nothing but its times"
        facts["File"] = str(page_run.path)
        yield label, capitalized(verdict_sentence(run)), facts


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
