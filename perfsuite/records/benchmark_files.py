"""Files of llama.cpp's own benchmarks, test by test: those of llama-bench, and those of ``test-backend-ops perf``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.records.benchmark_text import ACCEPTED, BACKEND_OPS_TABLE, LLAMA_BENCH_TABLE, benchmark_rows
from perfsuite.records.llama_bench import BenchRun, setting_text
from perfsuite.units import NS_PER_S, format_count

_NS_PER_US = NS_PER_S / 1e6
#: What no operator is told where nobody asks, of parameters that not every release has; of others 0.
_UNASKED: Mapping[str, str] = {"o": "1", "per": "[0,1,2,3]", "permute": "[0,1,2,3]"}
#: By operator: parameters that releases of test-backend-ops renamed or parted, and what they are now.
_RENAMED: Mapping[str, Mapping[str, tuple[tuple[str, str], ...]]] = {
    "FLASH_ATTN_EXT": {
        "hs": (("hsk", "{}"), ("hsv", "{}")),
        "nr": (("nr23", "[{},1]"),),
        "type_KV": (("type_K", "{}"), ("type_V", "{}")),
    },
}
#: A parameter of an operator; a comma within brackets parts nothing.
_PARAMETER = re.compile(r"(?:^|,)(\w+)=((?:\[[^\]]*\]|[^,\[])*)")
_MOST_CHARACTERS = 10_000
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedTest:
    """One run of one test."""

    #: What its tool calls it: ``pp512``, ``MUL_MAT``.
    name: str
    #: What it ran on, and all that it was told, by the tool's names; without what nobody asks for.
    machine: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    #: When it began: ISO 8601 in UTC, to the second.
    began: str
    #: None where the tool calls what came out wrong.
    time_ns: int | None
    problem: str = ""

    @property
    def identity(self) -> Mapping[str, str]:
        """All that two runs of one test have alike."""
        return dict((*self.machine, *self.settings))


def read_benchmark(path: Path) -> tuple[TimedTest, ...]:
    """Read the tests of a file, whose form its content shows, in the order in which they ran.

    What llama-bench repeated in one process is one time, the median repetition.

    Raises PerfsuiteError: the file cannot be read, is none of the forms, or holds no time; the message names the
    place.
    """
    tables = benchmark_rows(path)
    bench = [BenchRun.from_plain(row, where) for where, row in tables.get(LLAMA_BENCH_TABLE, ())]
    operators = tables.get(BACKEND_OPS_TABLE, [])
    tests = [*map(_bench_test, bench), *_operator_tests(operators)]
    if all(each.time_ns is None for each in tests):
        raise PerfsuiteError(
            f"{path}: holds no time{_checks(operators, tests)}; run test-backend-ops perf --output sql"
        )
    return tuple(sorted(tests, key=lambda test: test.began))


def _bench_test(run: BenchRun) -> TimedTest:
    return TimedTest(
        name=run.test,
        machine=tuple(run.machine.items()),
        settings=tuple(run.settings.items()),
        began=run.test_time,
        time_ns=round(run.time_ns),
    )


def _operator_tests(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[TimedTest]:
    """Yield what was timed, and what failed its check; what is not supported or was only checked is no test."""
    for where, row in rows:
        time_us = _time_us(row, where)
        is_wrong = _says(row, "supported") and not _says(row, "passed")
        if time_us or is_wrong:
            operator = _text(row, "op_name", where)
            machine = {name: str(row[name]) for name in ("backend_name", "device_description") if row.get(name)}
            yield TimedTest(
                name=operator,
                machine=tuple(machine.items()),
                settings=tuple(_parameters(operator, _text(row, "op_params", where)).items()),
                began=_text(row, "test_time", where),
                time_ns=None if is_wrong else max(1, round(time_us * _NS_PER_US)),
                problem=f"its check failed{_reason(row)}" if is_wrong else "",
            )


def _says(row: Mapping[str, Any], name: str) -> bool:
    """Return a truth value; true where a row has none."""
    return str(row.get(name, "1")) not in ("0", "false", "False")


def _reason(row: Mapping[str, Any]) -> str:
    return f" ({row['error_message']})" if row.get("error_message") else ""


def _parameters(operator: str, text: str) -> Mapping[str, str]:
    found = {name: setting_text(value) for name, value in _PARAMETER.findall(text[:_MOST_CHARACTERS])}
    if not found or len(text) > _MOST_CHARACTERS:
        return {"op_params": text} if text else {}
    renamed = _RENAMED.get(operator, {})
    now = {new: form.format(value) for name, value in found.items() for new, form in renamed.get(name, ((name, "{}"),))}
    return {name: value for name, value in now.items() if value != _UNASKED.get(name, "0")}


def _checks(rows: Sequence[tuple[str, Mapping[str, Any]]], wrong: Sequence[TimedTest]) -> str:
    """Return what a file without times says of correctness."""
    unsupported = [f"{row.get('op_name')}({row.get('op_params')})" for _, row in rows if not _says(row, "supported")]
    failed = [f"{each.name}({','.join(map('='.join, each.settings))}): {each.problem}" for each in wrong]
    if not rows:
        return ""
    n_passed = len(rows) - len(failed) - len(unsupported)
    parts = [f"of {format_count(len(rows), 'check')} {n_passed} passed"]
    for told, names in (("failed", failed), ("not supported", unsupported)):
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        parts += [f"{told}: {', '.join(names[:_MOST_NAMED])}{more}"] if names else []
    return f", {'; '.join(parts)}"


def _text(row: Mapping[str, Any], name: str, where: str) -> str:
    if row.get(name) is None:
        raise PerfsuiteError(f"{where}: {name} is missing; {ACCEPTED}")
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
