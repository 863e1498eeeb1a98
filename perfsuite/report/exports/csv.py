"""Runs as a table of comma-separated values, one row a case. *Source*: RFC 4180."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from perfsuite.records.outcome import Judgement
from perfsuite.records.run_file import RunFile
from perfsuite.report.exports import Export
from perfsuite.report.run_writer import plain_case, run_facts
from perfsuite.report.visible import without_controls

_Cell = str | int | float | None

#: What a spreadsheet takes for the beginning of a formula. *Source*: OWASP, "CSV Injection".
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")

_COLUMNS = (
    *("run_id", "started_at", "device", "board", "workload", "engine", "commit", "against", "suite_version"),
    *("case", "kind", "outcome", "measured_ns", "tokens_per_s", "floor_ns"),
    *("expected_ns", "expected_lower_ns", "expected_upper_ns", "limit_ns", "baseline_ns"),
    *("change_ratio", "lower_ratio", "upper_ratio", "resolution_ratio", "lost_ns"),
    *("n_samples", "n_pairs", "n_more_pairs", "smallest_effect_ratio", "reason", "samples_ns"),
)


def csv_text(runs: Sequence[RunFile], *, is_for_spreadsheet: bool = False) -> str:
    """Return a header and a row for each case of each run; what is not known is empty.

    Text is read back as it stands, except that control characters other than tabs and line ends are written out. For
    a spreadsheet, text that one would take for a formula gets an apostrophe before it.
    """
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, _COLUMNS, extrasaction="ignore", lineterminator="\r\n")
    writer.writeheader()
    for run in runs:
        for judgement in run.judgements:
            cells = {name: _written(cell) for name, cell in _cells(run, judgement).items()}
            writer.writerow({name: _disarmed(cell) for name, cell in cells.items()} if is_for_spreadsheet else cells)
    return out.getvalue()


def _cells(run: RunFile, judgement: Judgement) -> dict[str, _Cell]:
    return {
        **run_facts(run),
        **plain_case(judgement),
        "case": judgement.case_id,
        "lost_ns": judgement.lost_ns,
        "n_samples": len(judgement.samples_ns),
        "samples_ns": " ".join(map(str, judgement.samples_ns)),
    }


def _written(cell: _Cell) -> _Cell:
    return without_controls(cell) if isinstance(cell, str) else cell


def _disarmed(cell: _Cell) -> _Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_SIGNS) else cell


EXPORTS = (
    Export(
        name="csv",
        summary="a table, one row a case",
        text=csv_text,
        flags={
            "is_for_spreadsheet": (
                "--for-spreadsheet",
                "put an apostrophe before text that a spreadsheet would take for a formula",
            )
        },
        place=7,
    ),
)
