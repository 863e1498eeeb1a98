"""What pytest calls when tests have run: how each case shows, the run's files, its exit code, and the last screen."""

from __future__ import annotations

from collections.abc import Generator
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import pytest

from perfsuite.errors import PerfsuiteError, meant
from perfsuite.plugin.fixtures import JUDGEMENT_KEY, SESSION_KEY
from perfsuite.plugin.parameters import CASE_KINDS
from perfsuite.records.outcome import NOTHING_JUDGED_EXIT, Outcome
from perfsuite.report.visible import terminal_text
from perfsuite.report.words import engine_words

if TYPE_CHECKING:
    from perfsuite.experiments.run_outputs import WrittenRun
    from perfsuite.experiments.session import PerfSession

_MARGIN_KINDS = f"there are {', '.join(CASE_KINDS.values())}, and the first parts of own ids"

#: How an outcome shows: category in the summary, letter, word.
_STATUS = {
    Outcome.IMPROVED: ("passed", "I", "IMPROVED"),
    Outcome.NEW: ("new", "N", "NEW"),
    Outcome.INVALID: ("invalid", "V", "INVALID"),
    Outcome.INCOMPARABLE: ("incomparable", "C", "INCOMPARABLE"),
    Outcome.SUSPECT: ("suspect", "S", "SUSPECT"),
    Outcome.INCONCLUSIVE: ("inconclusive", "U", "INCONCLUSIVE"),
}

#: Where nothing else is wrong with the run than that it leaves something open: the line that says so.
_OPEN_KEY = pytest.StashKey[str]()
_WRITTEN_KEY = pytest.StashKey["WrittenRun"]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mark each report with the outcome of its case, so that it shows as such."""
    report = yield
    judgement = item.stash.get(JUDGEMENT_KEY, None)
    if judgement is not None and report.when == "call":
        report.perf_outcome = judgement.outcome  # type: ignore[attr-defined]
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Show what is new, invalid, incomparable, suspect or undecided under a category and a letter of its own."""
    outcome = getattr(report, "perf_outcome", None)
    if outcome is None or report.failed:
        return None
    return _STATUS.get(outcome)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the run's files and the baselines; what could not be measured or recorded makes the run fail."""
    perf = session.config.stash.get(SESSION_KEY, None)
    if perf is None or session.config.option.collectonly or perf.config.is_planned or not perf.has_results:
        return
    _finish(perf, session)
    without_test = perf.config.strict and any(group.unclaimed or group.found for group in perf.groups.values())
    if (perf.errors or without_test) and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    elif (perf.is_undecided or perf.has_no_answer or perf.suspicion) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus, session.config.stash[_OPEN_KEY] = _open_end(perf)


def _open_end(perf: PerfSession) -> tuple[int, str]:
    """Return the exit code of a run in which nothing fails and something is open, and the line that says so."""
    if perf.is_undecided or perf.has_no_answer:
        what = "nothing was judged" if perf.is_undecided else "no whole phase was judged"
        option = "--perf-allow-undecided"
        exit_code = 0 if perf.config.allows_undecided else NOTHING_JUDGED_EXIT
    else:
        what, option = perf.suspicion, "--perf-suspect=pass"
        exit_code = perf.config.suspect_exit
    told = f"; with {option} it is 0" if exit_code else f", by {option}"
    return exit_code, f"perfsuite: {what}: exit code {exit_code}{told}"


def _finish(perf: PerfSession, session: pytest.Session) -> None:
    from perfsuite.experiments.run_outputs import write_outputs  # brings what only a finished run needs

    perf.let_go()
    try:
        perf.finish(is_interrupted=session.exitstatus == pytest.ExitCode.INTERRUPTED)
    except PerfsuiteError as error:
        perf.errors["baselines"] = str(error)
    try:
        session.config.stash[_WRITTEN_KEY] = write_outputs(perf)
    except PerfsuiteError as error:
        perf.errors["files"] = str(error)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the tables and what to do next."""
    perf = config.stash.get(SESSION_KEY, None)
    if perf is None or perf.config.is_planned or not perf.has_results:
        return
    from perfsuite.report.summary_table import summary_text  # brings rich, which only a finished run needs

    judgements = tuple(perf.judgements.values())
    if not terminalreporter.config.get_verbosity() < 0:
        terminalreporter.section("performance")
        if subjects := perf.subjects():
            terminalreporter.write_line(terminal_text(engine_words(subjects)))
        text = summary_text(
            judgements,
            width=get_terminal_size().columns if terminalreporter.isatty else None,
            is_color=terminalreporter.hasmarkup,
            shows_all=config.get_verbosity() > 0,
        )
        terminalreporter.write(text)
    for line in _closing_lines(perf, config.stash.get(_WRITTEN_KEY, None)):
        terminalreporter.write_line(line)
    for kind in perf.config.margins.unused_kinds(perf.kinds()):
        told = meant(kind, CASE_KINDS.values())
        terminalreporter.write_line(f"  --perf-margin: no case is of the kind {kind!r}; {_MARGIN_KINDS}{told}")
    for note in perf.baseline_notes():
        terminalreporter.write_line(f"  {terminal_text(note)}")
    for error in perf.errors.values():
        terminalreporter.write_line(f"perfsuite: error: {terminal_text(error)}", red=True)
    if perf.measured.saturated is not None:
        terminalreporter.write_line(f"perfsuite: {terminal_text(perf.measured.saturated)}", yellow=True)
    if line := config.stash.get(_OPEN_KEY, ""):
        terminalreporter.write_line(line, yellow=True)


def _closing_lines(perf: PerfSession, written: WrittenRun | None) -> tuple[str, ...]:
    """Return what came out and what to do next, and what could not be written."""
    from perfsuite.experiments.run_outputs import attribution
    from perfsuite.report.terminal import next_step  # see `pytest_terminal_summary`

    report_path = None if written is None or written.report_path is None else str(written.report_path)
    lines = next_step(
        tuple(perf.judgements.values()),
        None if written is None else str(written.run_path),
        attribution(perf),
        report_path,
        origin=perf.config.origin,
        is_interrupted=perf.is_interrupted,
        is_recording=perf.config.baseline_mode == "record",
    )
    complaints = () if written is None else written.complaints
    return (*lines, *(f"  {terminal_text(complaint)}" for complaint in complaints))
