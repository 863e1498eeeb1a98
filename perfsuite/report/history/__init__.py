"""The history of all runs as Parquet files, which DuckDB reads and writes; docs/history.md has columns and layout.

Importing this package imports no DuckDB: that is for whoever asks.
"""

from perfsuite.report.history.append import Compaction, append_run, compact
from perfsuite.report.history.files import SkippedFile
from perfsuite.report.history.queries import (
    HistoryCase,
    HistoryRun,
    cases_of,
    run_ids,
    runs_of,
    trend_of,
)
from perfsuite.report.history.reader import HistoryReader, open_history

__all__ = [
    "Compaction",
    "HistoryCase",
    "HistoryReader",
    "HistoryRun",
    "SkippedFile",
    "append_run",
    "cases_of",
    "compact",
    "open_history",
    "run_ids",
    "runs_of",
    "trend_of",
]
