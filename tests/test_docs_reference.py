"""The pages of the reference say what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import get_args, get_type_hints, is_typeddict

from perfsuite.device.profile.values import Tables
from perfsuite.records.outcome import Outcome

from .docs_pages import ROOT

REFERENCE = ROOT / "docs" / "reference"


def test_the_written_pages_are_those_of_the_parsers() -> None:
    """Pages, man page and completion are what the code says; tools/reference_pages.py writes them again."""
    told = subprocess.run(
        [sys.executable, ROOT / "tools" / "reference_pages.py", "--check"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, f"{told.stdout}{told.stderr}; run tools/reference_pages.py"


def test_every_key_of_a_profile_is_explained() -> None:
    page = (REFERENCE / "profiles.md").read_text("utf-8").partition("## Extending")[0]
    explained = {
        key for row in re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)
    }
    assert explained == set(_keys(Tables))


def _keys(table: type) -> Iterator[str]:
    """Yield the keys of a table of a profile, and those of the tables in it, except the names of cases."""
    for name, kind in get_type_hints(table).items():
        inner = [each for each in (kind, *get_args(kind)) if is_typeddict(each) or is_dataclass(each)]
        if name == "sentinel_weight_ratio" or not inner:
            yield name
        for each in inner if name != "sentinel_weight_ratio" else ():
            yield from _keys(each) if is_typeddict(each) else (field.name for field in fields(each))


def test_the_figures_of_the_explanations_are_those_of_the_results() -> None:
    """Each figure in the tables of error rates and forecast errors is in docs/results.md as it is."""
    results = (ROOT / "docs" / "results.md").read_text("utf-8")
    pages = [(ROOT / "docs" / name).read_text("utf-8") for name in ("explanation/verdicts.md", "forecasting.md")]
    rows = [line for page in pages for line in page.splitlines() if line.startswith("| ")]
    figures = [each for row in rows for each in re.findall(r"[-+]?\d[\d.,]*(?: of [\d,]+| %)", row)]
    assert len(figures) > 15
    assert [each for each in figures if each not in results] == []


def test_every_outcome_is_explained() -> None:
    text = (ROOT / "docs" / "explanation" / "verdicts.md").read_text("utf-8")
    assert [each.name for each in Outcome if f"`{each.name}`" not in text] == []
