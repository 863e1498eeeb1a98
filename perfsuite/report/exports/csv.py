"""Runs as a table of comma-separated values, one row a case. *Source*: RFC 4180."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence

from perfsuite.records.judgement import Judgement
from perfsuite.report.engine_words import engine_words
from perfsuite.report.run_file import RunFile
from perfsuite.report.token_rates import tokens_per_s

_Cell = str | int | float | None

#: What a spreadsheet takes for the beginning of a formula. *Source*: OWASP, "CSV Injection".
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")

_RUN_COLUMNS: Mapping[str, Callable[[RunFile], _Cell]] = {
    "run_id": lambda run: run.origin.run_id,
    "started_at": lambda run: run.started_at,
    "device": lambda run: run.device,
    "board": lambda run: run.origin.kept_by,
    "workload": lambda run: run.workload,
    "engine": lambda run: engine_words(run.subjects),
    "commit": lambda run: run.origin.commit.sha if run.origin.commit else None,
    "against": lambda run: run.against,
    "suite_version": lambda run: run.suite_version,
}

_CASE_COLUMNS: Mapping[str, Callable[[Judgement], _Cell]] = {
    "case": lambda judgement: judgement.case_id,
    "kind": lambda judgement: judgement.kind,
    "outcome": lambda judgement: judgement.outcome.value,
    "measured_ns": lambda judgement: judgement.measured_ns,
    "tokens_per_s": tokens_per_s,
    "floor_ns": lambda judgement: judgement.floor_ns,
    "expected_ns": lambda judgement: judgement.expected_ns,
    "expected_lower_ns": lambda judgement: judgement.lower_ns,
    "expected_upper_ns": lambda judgement: judgement.upper_ns,
    "limit_ns": lambda judgement: judgement.limit_ns,
    "baseline_ns": lambda judgement: judgement.baseline_ns,
    "change_ratio": lambda judgement: judgement.change_ratio,
    "lower_ratio": lambda judgement: judgement.lower_ratio,
    "upper_ratio": lambda judgement: judgement.upper_ratio,
    "resolution_ratio": lambda judgement: judgement.resolution_ratio,
    "lost_ns": lambda judgement: judgement.lost_ns,
    "n_samples": lambda judgement: len(judgement.samples_ns),
    "n_pairs": lambda judgement: judgement.n_pairs,
    "n_more_pairs": lambda judgement: judgement.n_more_pairs,
    "smallest_effect_ratio": lambda judgement: judgement.smallest_effect_ratio,
    "reason": lambda judgement: judgement.reason,
    "samples_ns": lambda judgement: " ".join(map(str, judgement.samples_ns)),
}


def csv_text(runs: Sequence[RunFile], *, is_for_spreadsheet: bool = False) -> str:
    """Return a header and a row for each case of each run; what is not known is empty.

    Text stands as it is, so that it is read back as it was. For a spreadsheet, text that one would take for a formula
    gets an apostrophe before it.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([*_RUN_COLUMNS, *_CASE_COLUMNS])
    for run in runs:
        told = [column(run) for column in _RUN_COLUMNS.values()]
        for judgement in run.judgements:
            cells = [*told, *(column(judgement) for column in _CASE_COLUMNS.values())]
            writer.writerow([_disarmed(cell) for cell in cells] if is_for_spreadsheet else cells)
    return out.getvalue()


def _disarmed(cell: _Cell) -> _Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA_SIGNS) else cell
