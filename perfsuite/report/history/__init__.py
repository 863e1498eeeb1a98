"""The history of all runs as Parquet files, which DuckDB reads and writes; docs/history.md has columns and layout.

Importing this package imports no DuckDB: that is for whoever asks.
"""

from perfsuite.report.history.append import append_run
from perfsuite.report.history.compaction import Compaction, compact
from perfsuite.report.history.queries import (
    HistoryCase,
    HistoryRun,
    bare_point,
    cases_of,
    nights_of,
    points_of_runs,
    run_ids,
    runs_of,
    trend_of,
    trends_of,
)
from perfsuite.report.history.reader import HistoryReader, open_history

__all__ = [
    "Compaction",
    "HistoryCase",
    "HistoryReader",
    "HistoryRun",
    "append_run",
    "bare_point",
    "cases_of",
    "compact",
    "nights_of",
    "open_history",
    "points_of_runs",
    "run_ids",
    "runs_of",
    "trend_of",
    "trends_of",
]
