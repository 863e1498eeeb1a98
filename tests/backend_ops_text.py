"""What test-backend-ops perf --output sql prints."""

from __future__ import annotations

from perfsuite.records.benchmark_files import BACKEND_OPS_TABLE

_COLUMNS = ("test_time", "backend_name", "op_name", "op_params", "time_us")


def ops_sql(*rows: tuple[str, float]) -> str:
    """Return the SQL of runs of one product: when each began, and its microseconds."""
    values = "".join(
        f"INSERT INTO {BACKEND_OPS_TABLE} ({', '.join(_COLUMNS)}) "
        f"VALUES ('{began}', 'CPU', 'MUL_MAT', 'type_a=q8_0,m=4096', '{time_us}');\n"
        for began, time_us in rows
    )
    return f"CREATE TABLE IF NOT EXISTS {BACKEND_OPS_TABLE} ({', '.join(_COLUMNS)});\n\n{values}"
