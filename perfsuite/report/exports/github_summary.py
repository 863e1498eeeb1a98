"""The summary of a job of GitHub Actions, for ``>> "$GITHUB_STEP_SUMMARY"``."""

from __future__ import annotations

from collections.abc import Sequence

from perfsuite.report.exports.markdown_page import page
from perfsuite.report.run_file import RunFile

#: What a step may write. *Source*: GitHub Docs, "Workflow commands for GitHub Actions", "Step isolation and limits".
LIMIT_BYTES = 1024 * 1024


def summary_text(runs: Sequence[RunFile]) -> str:
    """Return the summary, at most 1 MiB of UTF-8 however many cases there are."""
    return page(runs, limit=LIMIT_BYTES, measure=lambda text: len(text.encode()))
