"""What the files of all formats have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from perfsuite.records.run_file import RunFile
from perfsuite.report.exports.csv import csv_text
from perfsuite.report.exports.junit import case_properties, junit_text
from perfsuite.report.exports.openmetrics import openmetrics_text

from .conftest import CONTROLS, run_of


@pytest.mark.parametrize(
    ("export", "kept", "escape"),
    [
        (csv_text, "\t\n\r", r"\x1b"),
        (partial(csv_text, is_for_spreadsheet=True), "\t\n\r", r"\x1b"),
        (junit_text, "\n", r"\x1b"),
        (openmetrics_text, "\n", r"\\x1b"),
        (lambda runs: str(case_properties(runs[0].judgements[0])["perf_reason"]), "\t\n\r", r"\x9b"),
    ],
    ids=["csv", "spreadsheet", "junit", "openmetrics", "properties"],
)
def test_no_control_character_is_in_a_file(export: Callable[[Sequence[RunFile]], str], kept: str, escape: str) -> None:
    """All but the format's own are written out, so that what is shown steers no terminal."""
    text = export([run_of(CONTROLS)])
    assert {each for each in text if each in CONTROLS} == set(kept)
    assert escape in text
