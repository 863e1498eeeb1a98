"""Files of llama.cpp's own benchmarks, test by test: those of llama-bench, and those of ``test-backend-ops perf``."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.codec import content_of
from perfsuite.records.llama_bench import BenchRun
from perfsuite.records.llama_bench_file import MOST_BYTES, SQLITE_MAGIC, read_llama_bench, rows_of_database, rows_of_sql
from perfsuite.units import NS_PER_S

#: The table that test-backend-ops fills. *Source*: ``sql_printer`` of ``tests/test-backend-ops.cpp`` in llama.cpp.
BACKEND_OPS_TABLE = "test_backend_ops"
_ACCEPTED = "expected an output of llama-bench (json, jsonl, sql) or of test-backend-ops perf --output sql"
_CSV_BEGIN = b'"op_name"'
_NS_PER_US = NS_PER_S / 1e6
#: Fields of llama-bench that two runs of one test have alike, besides its name.
_SETTINGS = (
    *("model_type", "model_size", "backends", "n_batch", "n_ubatch", "n_threads", "type_k", "type_v"),
    *("n_gpu_layers", "flash_attn"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedTest:
    """One run of one test: its name, when it began (ISO 8601 in UTC, to the second), and its time."""

    name: str
    began: str
    time_ns: int


def read_benchmark(path: Path) -> dict[str, tuple[TimedTest, ...]]:
    """Read the tests of a file, whose format its content shows: by name, each in the order in which they ran.

    What llama-bench repeated in one process is one time, the median repetition.

    Raises PerfsuiteError: the file cannot be read, is none of the formats, or holds no time; the message names the
    place.
    """
    content = content_of(path, PerfsuiteError, _ACCEPTED, most_bytes=MOST_BYTES)
    if content.startswith(_CSV_BEGIN):
        raise PerfsuiteError(f"{path}: is the CSV of test-backend-ops, which has no times; use --output sql")
    tests = _operator_tests(path, content) if _is_of_backend_ops(content) else _bench_tests(read_llama_bench(path))
    by_name: dict[str, list[TimedTest]] = defaultdict(list)
    for test in tests:
        by_name[test.name].append(test)
    if not by_name:
        raise PerfsuiteError(f"{path}: holds no test with a time; run test-backend-ops perf --output sql")
    return {name: tuple(sorted(each, key=lambda test: test.began)) for name, each in by_name.items()}


def _is_of_backend_ops(content: bytes) -> bool:
    """Say whether the text, or the database with the text of its tables, is of test-backend-ops."""
    begin = content.lstrip()[:6].upper()
    is_sql = content.startswith(SQLITE_MAGIC) or begin in (b"CREATE", b"INSERT")
    return is_sql and BACKEND_OPS_TABLE.encode() in content and b"llama_bench" not in content[:65536]


def _bench_tests(runs: tuple[BenchRun, ...]) -> Iterator[TimedTest]:
    for run in runs:
        own = (f"{name}={getattr(run, name)}" for name in _SETTINGS)
        yield TimedTest(name=" ".join((run.test, *own)), began=run.test_time, time_ns=round(run.time_ns))


def _operator_tests(path: Path, content: bytes) -> Iterator[TimedTest]:
    if content.startswith(SQLITE_MAGIC):
        rows = rows_of_database(path, table=BACKEND_OPS_TABLE, accepted=_ACCEPTED)
    else:
        text = content.decode("utf-8", errors="replace")
        rows = rows_of_sql(path, text, table=BACKEND_OPS_TABLE, accepted=_ACCEPTED)
    for where, row in rows:
        time_us = _time_us(row, where)
        if time_us:
            backend = _text(row, "backend_name", where)
            name = f"{_text(row, 'op_name', where)}({_text(row, 'op_params', where)}) {backend}"
            yield TimedTest(
                name=name, began=_text(row, "test_time", where), time_ns=max(1, round(time_us * _NS_PER_US))
            )


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    if row.get(name) is None:
        raise PerfsuiteError(f"{where}: {name} is missing; {_ACCEPTED}")
    return str(row[name])


def _time_us(row: Mapping[str, Any], where: str) -> float:
    """Return the time of an operator; 0 of one that was not supported, or not timed."""
    text = _text(row, "time_us", where)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < 1e12:
        raise PerfsuiteError(f"{where}: time_us is {text[:40]!r}, expected microseconds")
    return value
