"""The pages of the reference say what the code says."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

from perfsuite import errors
from perfsuite.records.outcome import Outcome

from .docs_pages import ROOT

REFERENCE = ROOT / "docs" / "reference"


def headings(page: str) -> list[str]:
    """The headings of the second level of a page."""
    return re.findall(r"^## (.+)$", (REFERENCE / page).read_text("utf-8"), re.MULTILINE)


def test_the_written_pages_are_those_of_the_parsers() -> None:
    """Options and commands are what the parsers take; tools/reference_pages.py writes them again."""
    told = subprocess.run(
        [sys.executable, ROOT / "tools" / "reference_pages.py", "--check"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, f"{told.stdout}{told.stderr}; run tools/reference_pages.py"


def test_every_error_is_explained() -> None:
    """The page of the errors has a heading for each class of them, and for no other."""
    classes = [each for _, each in inspect.getmembers(errors, inspect.isclass) if each.__module__ == errors.__name__]
    named = [each.__name__ for each in classes if issubclass(each, errors.PerfsuiteError)]
    assert sorted(headings("errors.md")) == sorted(named)


def test_the_figures_of_the_explanations_are_those_of_the_results() -> None:
    """Each figure in the tables of certified rates and forecast errors is in docs/results.md as it is."""
    results = (ROOT / "docs" / "results.md").read_text("utf-8")
    pages = [(ROOT / "docs" / name).read_text("utf-8") for name in ("explanation/verdicts.md", "forecasting.md")]
    rows = [
        line
        for page in pages
        for line in page.splitlines()
        if re.match(r"\| [^|]*(false|found|runs|named|TT|TP)", line)
    ]
    cells = [cell.strip() for row in rows for cell in row.strip("|").split("|") if re.search(r"\d", cell)]
    assert len(cells) > 15
    assert [cell for cell in cells if cell not in results] == []


def test_every_outcome_is_explained() -> None:
    """The page of the verdicts has all outcomes."""
    text = (ROOT / "docs" / "explanation" / "verdicts.md").read_text("utf-8")
    assert [each.name for each in Outcome if f"`{each.name}`" not in text] == []
