"""How the outcome of a case shows as that of its test."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from perfsuite.plugin.fixtures import JUDGEMENT_KEY
from perfsuite.records.outcome import Outcome

#: How an outcome shows: category in the summary, letter, word.
_STATUS = {
    Outcome.IMPROVED: ("passed", "I", "IMPROVED"),
    Outcome.NEW: ("new", "N", "NEW"),
    Outcome.INVALID: ("invalid", "V", "INVALID"),
    Outcome.INCOMPARABLE: ("incomparable", "C", "INCOMPARABLE"),
    Outcome.SUSPECT: ("suspect", "S", "SUSPECT"),
    Outcome.INCONCLUSIVE: ("inconclusive", "U", "INCONCLUSIVE"),
}


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
