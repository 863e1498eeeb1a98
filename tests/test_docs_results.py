"""The tables beside docs/results.md are whole, say their units, and give the page's own figures."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from statistics import fmean

import pytest

from .docs_pages import ROOT

PAGE = (ROOT / "docs" / "results.md").read_text("utf-8")
TABLES = sorted((ROOT / "docs" / "results").glob("*.csv"))

#: How the name of a column of numbers ends, or all of it, unless a column says the unit of each row.
UNITS = ("_ms", "_us", "_percent", "_ratio", "_tokens", "pairs", "models", "searches", "layers", "hits_per_step")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_a_table_is_whole_and_linked(path: Path) -> None:
    """Each row has as many cells as the header, and the page links to the table."""
    rows = rows_of(path)
    assert rows
    assert all(None not in row and None not in row.values() for row in rows)
    assert f"(results/{path.name})" in PAGE


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_columns_of_numbers_have_units(path: Path) -> None:
    """A column that holds nothing but numbers names their unit, or a column of units does."""
    rows = rows_of(path)
    if "unit" not in rows[0]:
        filled = {name: [row[name] for row in rows if row[name]] for name in rows[0]}
        numbers = [name for name, cells in filled.items() if cells and all(map(is_number, cells))]
        assert [name for name in numbers if not name.endswith(UNITS)] == []


@pytest.mark.parametrize("latency", ["ttft", "tpot"])
def test_the_errors_of_forecasts_follow_from_their_table(latency: str) -> None:
    """Mean error, bias, worst and coverage on the page are those of the 30 forecasts."""
    rows = rows_of(ROOT / "docs" / "results" / "forecasts.csv")
    errors = [float(row[f"{latency}_error_percent"]) for row in rows]
    inside = [row[f"{latency}_is_inside"] for row in rows].count("yes")
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {latency.upper()} | "))
    mean, _, bias, worst, covered = [cell.strip() for cell in line.split("|")[2:7]]
    assert abs(float(mean.removesuffix(" %")) - fmean(map(abs, errors))) < 0.06
    assert abs(float(bias.removesuffix(" %")) - fmean(errors)) < 0.06
    assert float(worst.removesuffix(" %")) == max(errors, key=abs)
    assert covered == f"{inside} of {len(rows)}"


def test_tests_that_pages_name_are_there() -> None:
    """``test_x.py::test_y``; a second ``::test_z`` in a line is of the same file."""
    functions = dict[str, str]()
    for path in (ROOT / "tests").rglob("test_*.py"):
        functions[path.name] = functions.get(path.name, "") + path.read_text("utf-8")
    for page in ("results.md", "security.md"):
        for line in (ROOT / "docs" / page).read_text("utf-8").splitlines():
            file = ""
            for name, function in re.findall(r"`(?:tests/[\w/]*)?(test_\w+\.py)?(?:::(test_\w+))?`", line):
                file = name or file
                assert not file or f"def {function}" in functions[file], line
