"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perfsuite.report.page.page_run import PageRun


def write_page(runs: Sequence[PageRun], path: Path) -> Path:
    """Write the page about the first of the runs, beside which the others are shown; return its path.

    Raises PerfsuiteError where the file cannot be written; what was there before stays.
    """
    from perfsuite.report.page import render  # brings Jinja2, which only pages need

    return render.write_page(runs, path)
