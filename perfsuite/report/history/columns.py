"""The columns of the history's Parquet files; docs/history.md shows this table."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

#: Raised whenever a column changes its meaning or goes; a column that is added is NULL in older files.
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class HistoryColumn:
    """One column: its name, its type in SQL, and what it holds."""

    name: str
    sql_type: str
    meaning: str


_column = HistoryColumn

_OF_RUN = (
    _column("schema_version", "INTEGER", "schema of the row, 1"),
    _column("run_id", "VARCHAR", "unlike that of any other run"),
    _column("started_at", "TIMESTAMP", "when the run began, UTC, without a time zone"),
    _column("device", "VARCHAR", "name of the device's profile"),
    _column("board", "VARCHAR", "which of several devices of that profile: a hash of its serial number or machine id"),
    _column("board_hostname", "VARCHAR", "its host name then"),
    _column("is_linked", "BOOLEAN", "whether it was measured over a link; then its runs are a series of their own"),
    _column("workload", "VARCHAR", "`<model>/<scenario>` of the run"),
    _column("model_name", "VARCHAR", "the part of `workload` before the last `/`"),
    _column("scenario", "VARCHAR", "the part of `workload` after it"),
    _column("suite_version", "VARCHAR", "version of perfsuite"),
    _column("commit_sha", "VARCHAR", "commit of the sources under test"),
    _column("is_dirty", "BOOLEAN", "whether tracked files differed from it"),
    _column("branch", "VARCHAR", "branch of the sources under test"),
    _column("is_injected", "BOOLEAN", "whether something was slowed down on purpose"),
    _column("against", "VARCHAR", "what the run was compared with in pairs; then it is not a night of change points"),
)

OF_CASE = (
    _column("case_id", "VARCHAR", "what was judged"),
    _column("kind", "VARCHAR", "`phase`, `operator`, `kernel`, ..."),
    _column("outcome", "VARCHAR", "`pass`, `regressed`, ..., as in run.json"),
    _column("reason", "VARCHAR", "why, in one sentence"),
    _column("measured_ns", "BIGINT", "median of the samples, or the latency that was judged"),
    _column("samples_ns", "BIGINT[]", "one value a replicate"),
    _column("n_samples", "INTEGER", "number of samples"),
    _column("sample_min_ns", "BIGINT", "the fastest sample"),
    _column("sample_median_ns", "BIGINT", "median of the samples, rounded"),
    _column("sample_max_ns", "BIGINT", "the slowest sample"),
    _column("floor_ns", "BIGINT", "the least that physics allows"),
    _column("expected_ns", "BIGINT", "the forecast"),
    _column("expected_lower_ns", "BIGINT", "the forecast's interval, from"),
    _column("expected_upper_ns", "BIGINT", "the forecast's interval, to"),
    _column("limit_ns", "BIGINT", "the most that passes by the forecast"),
    _column("baseline_ns", "BIGINT", "median of the baseline"),
    _column("change_ratio", "DOUBLE", "new over old, 1 is equal"),
    _column("lower_ratio", "DOUBLE", "lower bound of `change_ratio`"),
    _column("upper_ratio", "DOUBLE", "upper bound of `change_ratio`"),
    _column("resolution_ratio", "DOUBLE", "the slowdown that a pass rules out: 0.05 is 5 %"),
    _column("n_pairs", "INTEGER", "pairs that the verdict rests on"),
)

_OF_GROUP = (
    _column("sentinel_memory_ns", "BIGINT", "median of the memory sentinel beside this case"),
    _column("sentinel_compute_ns", "BIGINT", "median of the compute sentinel beside this case"),
    _column("load_average", "DOUBLE", "load of the machine before the first replicate"),
    _column("cpu_mhz", "DOUBLE", "mean clock of the processors then"),
    _column("temperature_celsius", "DOUBLE", "hottest sensor then"),
    _column("waiting_ratio", "DOUBLE", "share of thread time spent waiting for a processor"),
    _column("steal_ratio", "DOUBLE", "share of the processors that the hypervisor took"),
    _column("fingerprint_digest", "VARCHAR", "equal for runs that are comparable; of `fingerprint`"),
    _column("fingerprint", "VARCHAR", "JSON object of strings: the fields that must be equal, keys sorted"),
    _column("engine", "VARCHAR", "what was measured, in words"),
    _column("engine_build", "VARCHAR", "build id of the engine, where `engine` tells one"),
)

#: In the order in which files hold them.
COLUMNS = (*_OF_RUN, *OF_CASE, *_OF_GROUP)

_DIGEST = hashlib.sha256(repr([(column.name, column.sql_type) for column in COLUMNS]).encode()).hexdigest()[:8]

#: The key in a Parquet file's footer that says that it is of a history: its schema, and a digest of its columns.
MARK = f"perfsuite.history.schema={SCHEMA},columns={_DIGEST}"
