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
    _column("run_id", "VARCHAR", "unique"),
    _column("started_at", "TIMESTAMP", "start of the run, UTC"),
    _column("device", "VARCHAR", "profile"),
    _column("board", "VARCHAR", "hash of the serial number or machine id"),
    _column("board_hostname", "VARCHAR", "its host name"),
    _column("is_linked", "BOOLEAN", "measured over a link; then each board has its own series"),
    _column("workload", "VARCHAR", "`<model>/<scenario>`"),
    _column("model_name", "VARCHAR", "the part before the last `/`"),
    _column("scenario", "VARCHAR", "the part after it"),
    _column("suite_version", "VARCHAR", "perfsuite's version"),
    _column("commit_sha", "VARCHAR", "commit of the sources under test"),
    _column("is_dirty", "BOOLEAN", "tracked files differed from it"),
    _column("branch", "VARCHAR", "branch of the sources"),
    _column("is_injected", "BOOLEAN", "slowed down on purpose; no change points"),
    _column("against", "VARCHAR", "the old side of a run in pairs; no change points"),
)

OF_CASE = (
    _column("case_id", "VARCHAR", "what was judged"),
    _column("kind", "VARCHAR", "`phase`, `operator`, `kernel`, ..."),
    _column("outcome", "VARCHAR", "`pass`, `regressed`, ..."),
    _column("reason", "VARCHAR", "one sentence"),
    _column("measured_ns", "BIGINT", "median of the samples, or the judged latency"),
    _column("samples_ns", "BIGINT[]", "one value per replicate"),
    _column("n_samples", "INTEGER", "number of samples"),
    _column("sample_min_ns", "BIGINT", "fastest sample"),
    _column("sample_median_ns", "BIGINT", "median, rounded"),
    _column("sample_max_ns", "BIGINT", "slowest sample"),
    _column("floor_ns", "BIGINT", "the least that physics allows"),
    _column("expected_ns", "BIGINT", "forecast"),
    _column("expected_lower_ns", "BIGINT", "its interval, from"),
    _column("expected_upper_ns", "BIGINT", "its interval, to"),
    _column("limit_ns", "BIGINT", "the most that the forecast allows"),
    _column("baseline_ns", "BIGINT", "median of the baseline"),
    _column("change_ratio", "DOUBLE", "new over old"),
    _column("lower_ratio", "DOUBLE", "lower bound of `change_ratio`"),
    _column("upper_ratio", "DOUBLE", "upper bound of `change_ratio`"),
    _column("resolution_ratio", "DOUBLE", "the slowdown that a pass rules out: 0.05 is 5 %"),
    _column("n_pairs", "INTEGER", "pairs behind the verdict"),
)

_OF_GROUP = (
    _column("sentinel_memory_ns", "BIGINT", "median of the memory sentinel"),
    _column("sentinel_compute_ns", "BIGINT", "median of the compute sentinel"),
    _column("load_average", "DOUBLE", "load before the first replicate"),
    _column("cpu_mhz", "DOUBLE", "mean processor clock then"),
    _column("temperature_celsius", "DOUBLE", "hottest sensor then"),
    _column("waiting_ratio", "DOUBLE", "share of thread time spent waiting for a processor"),
    _column("steal_ratio", "DOUBLE", "share of the processors taken by the hypervisor"),
    _column("fingerprint_digest", "VARCHAR", "equal for comparable runs; of `fingerprint`"),
    _column("fingerprint", "VARCHAR", "JSON object of strings that must be equal, keys sorted"),
    _column("engine", "VARCHAR", "what was measured, in words"),
    _column("engine_build", "VARCHAR", "build id of the engine"),
)

#: In the order in which files hold them.
COLUMNS = (*_OF_RUN, *OF_CASE, *_OF_GROUP)

_DIGEST = hashlib.sha256(repr([(column.name, column.sql_type) for column in COLUMNS]).encode()).hexdigest()[:8]

#: The key in a Parquet file's footer that says that it is of a history: its schema, and a digest of its columns.
MARK = f"perfsuite.history.schema={SCHEMA},columns={_DIGEST}"
