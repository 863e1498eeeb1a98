"""What test-backend-ops perf --output sql prints."""

from __future__ import annotations

from perfsuite.records.benchmark_text import BACKEND_OPS_TABLE

_COLUMNS = (
    *("test_time", "backend_name", "op_name", "op_params", "time_us"),
    *("supported", "passed", "error_message"),
)


def ops_sql(
    *rows: tuple[str, float], operator: str = "MUL_MAT", parameters: str = "type_a=q8_0,m=4096", n_failed: int = 0
) -> str:
    """Return the SQL of runs of one operator: when each began, its microseconds; the first so many failed."""
    values = "".join(
        f"INSERT INTO {BACKEND_OPS_TABLE} ({', '.join(_COLUMNS)}) "
        f"VALUES ('{began}', 'CPU', '{operator}', '{parameters}', '{time_us}', '1', "
        f"'{int(at >= n_failed)}', '{'NMSE 1.93' if at < n_failed else ''}');\n"
        for at, (began, time_us) in enumerate(rows)
    )
    return f"CREATE TABLE IF NOT EXISTS {BACKEND_OPS_TABLE} ({', '.join(_COLUMNS)});\n\n{values}"
