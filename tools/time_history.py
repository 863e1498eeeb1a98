"""Times a case's trend, and the newest 90 runs of all cases, over a large history in fresh processes.

Two layouts: a file a run, as runs leave it, and one file, as `perfsuite history compact` leaves it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from perfsuite.report.history.append import compact, file_name, fill_table, run_rows
from perfsuite.report.history.database import copy_statement, database
from perfsuite.report.history.store import HistoryStore
from perfsuite.testing.run_files import synthetic_run

_BEGAN_AT = datetime(2023, 3, 1, 2)

#: What each fresh process does: as `perfsuite history trend` does, with the import of DuckDB.
_QUERY = """
import json, re, sys, time
began_s = time.perf_counter()
from pathlib import Path
from perfsuite.report.history import open_history, trend_of
history = open_history(Path(sys.argv[1]))
n_points = len(trend_of(history, sys.argv[2]))
query_s = time.perf_counter() - began_s
trend_of(history, last=90)
print(json.dumps({
    "query_s": round(query_s, 3),
    "all_s": round(time.perf_counter() - began_s - query_s, 3),
    "processor_s": round(time.process_time(), 3),
    "peak_mb": round(int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1000.0, 1),
    "n_points": n_points,
}))
"""

_LIMIT_S = 120


def make_runs(history_dir: Path, n_runs: int, n_cases: int) -> str:
    """Write a file a run, every run with its own times; return the id of a case that all of them hold."""
    run, store = synthetic_run(n_cases=n_cases), HistoryStore(history_dir)
    with database() as connection:
        fill_table(connection, run_rows(run))
        for index in range(n_runs):
            began_at, run_id = _BEGAN_AT + timedelta(days=index), f"{index:016x}"
            connection.execute(_RUN_OF_ITS_OWN, [run_id, began_at, index])
            name = file_name(began_at, run_id)
            store.write(name, lambda path: connection.execute(copy_statement("each_run", path)))
    return run.judgements[len(run.judgements) // 2].case_id


_RUN_OF_ITS_OWN = """
CREATE OR REPLACE TABLE each_run AS SELECT * REPLACE (
  $1 AS run_id, $2 AS started_at, sha1($1) AS commit_sha,
  (measured_ns * (0.9 + 0.2 * (hash(case_id, $3) % 1000) / 1000.0))::BIGINT AS measured_ns,
  list_transform(
    samples_ns, lambda each, place: (each * (0.9 + 0.2 * (hash(case_id, $3, place) % 1000) / 1000.0))::BIGINT)
    AS samples_ns
) FROM run_rows
"""


def timed(history_dir: Path, case_id: str, n_repeats: int) -> dict[str, Any]:
    """Ask for a case's trend in fresh processes; return the slowest and the largest of them, and the files."""
    told = [json.loads(_fresh(history_dir, case_id)) for _ in range(n_repeats)]
    files = list(history_dir.rglob("*.parquet"))
    return {
        "n_files": len(files),
        "files_mb": round(sum(path.stat().st_size for path in files) / 1e6, 1),
        "n_points": told[0]["n_points"],
        **{name: [each[name] for each in told] for name in ("query_s", "all_s", "processor_s")},
        "peak_mb": max(each["peak_mb"] for each in told),
    }


def _fresh(history_dir: Path, case_id: str) -> str:
    command = [sys.executable, "-c", _QUERY, str(history_dir), case_id]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LIMIT_S).stdout


def main() -> None:
    """Make both layouts, time them, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="default 1000")
    parser.add_argument("--cases", type=int, default=500, metavar="N", help="default 500")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="fresh processes each; default 5")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        history_dir = Path(folder)
        case_id = make_runs(history_dir, options.runs, options.cases)
        told: dict[str, Any] = {"n_runs": options.runs, "n_cases": options.cases}
        told["a_file_a_run"] = timed(history_dir, case_id, options.repeats)
        began_s = time.perf_counter()
        compact(history_dir)
        told["compact_s"] = round(time.perf_counter() - began_s, 2)
        told["compacted"] = timed(history_dir, case_id, options.repeats)
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
