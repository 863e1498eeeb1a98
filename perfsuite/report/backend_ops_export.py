"""Operators of a run as rows of llama.cpp's ``test-backend-ops perf``, so that what compares those compares ours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.cases import operator_cases
from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.records.fingerprint import BESIDE
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_file import RunFile, read_run_file
from perfsuite.units import NS_PER_S
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve


def read_alone_run(path: Path) -> RunFile:
    """Read a ``run.json``; raises PerfsuiteError where it was slowed down on purpose, or ran more than a model."""
    run = read_run_file(path)
    if run.is_injected:
        raise PerfsuiteError(f"{path}: was slowed down on purpose (--perf-inject); name a run without")
    fingerprint = run.fingerprints.get("llama", {})
    for field in BESIDE:
        if field in fingerprint:
            raise PerfsuiteError(f"{path}: ran with {field} {fingerprint[field]}, which no tool of llama.cpp's says")
    return run


_TABLE = "test_backend_ops"
#: Names and types of the columns. *Source*: llama.cpp, tests/test-backend-ops.cpp, test_result.
_COLUMNS = {
    **dict.fromkeys(("test_time", "build_commit", "backend_name", "op_name", "op_params", "test_mode"), "TEXT"),
    **dict.fromkeys(("supported", "passed"), "INTEGER"),
    "error_message": "TEXT",
    **dict.fromkeys(("time_us", "flops", "bandwidth_gb_s"), "REAL"),
    **dict.fromkeys(("memory_kb", "n_runs"), "INTEGER"),
    **dict.fromkeys(("device_description", "backend_reg_name"), "TEXT"),
}
#: What was not measured properly.
UNMEASURED = (Outcome.INVALID, Outcome.IMPOSSIBLE)
_COMMIT = re.compile(r"\bggml \S+ (?P<commit>[0-9a-f]{7,40})\b|\bbuild (?P<build>[0-9a-f]{7,40})\b")
_NS_PER_US, _BYTES_PER_KB, _BYTES_PER_GB = 1e3, 1024, 1e9


def backend_ops_sql(
    run_path: Path, *, cache_dir: Path, weights: str | None = None, build_commit: str | None = None
) -> str:
    """Return the measured operators of a ``run.json`` as ``test-backend-ops perf --output sql`` prints its own.

    A row is an operator of one role and phase: `time_us` is that of one of them, the median of the run over all layers
    divided by their number, with the FLOPs and bytes that the analytical graph has for it.

    Raises PerfsuiteError where the file is no run that measured operators of llama.cpp's CPU backend, or its weights
    are not known.
    """
    run = read_alone_run(run_path)
    try:
        workload = _workload(run, weights, cache_dir)
        rows = list(_rows(run, workload, build_commit))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PerfsuiteError(f"{run_path}: cannot be used ({type(error).__name__}: {error}); run again") from error
    if not rows:
        raise PerfsuiteError(f"{run_path}: holds no measured operator whose cost is known; run operators first")
    declared = ",\n".join(f"  {name} {kind}" for name, kind in _COLUMNS.items())
    columns = ", ".join(_COLUMNS)
    values = (", ".join(_literal(row[name]) for name in _COLUMNS) for row in rows)
    inserted = "".join(f"INSERT INTO {_TABLE} ({columns}) VALUES ({each});\n" for each in values)  # nosec B608 # quoted
    return f"CREATE TABLE IF NOT EXISTS {_TABLE} (\n{declared}\n);\n\n{inserted}"


def _workload(run: RunFile, weights: str | None, cache_dir: Path) -> LlamaWorkload:
    name, _, scenario = run.workload.rpartition("/")
    fingerprint = run.fingerprints["llama"]
    type_k, _, type_v = fingerprint["kv_types"].partition("/")
    return llama_workload(
        resolve(weights or name, cache_dir=cache_dir),
        find_scenario(scenario),
        flash_attn=fingerprint["flash_attn"] == "on",
        type_k=type_k,
        type_v=type_v,
    )


def _rows(run: RunFile, workload: LlamaWorkload, build_commit: str | None) -> Iterator[dict[str, Any]]:
    measured = {each.case_id: each for each in run.judgements if each.outcome not in UNMEASURED}
    graphs = {phase: workload.graph(phase) for phase in workload.graph_phases()}
    numbers = {phase: Counter(operator.role for operator in graph) for phase, graph in graphs.items()}
    ops = {(phase, each.role): each.op for phase, graph in graphs.items() for each in graph}
    described = _COMMIT.search(run.subjects.get("llama", ""))
    commit = build_commit or (described and (described["commit"] or described["build"])) or "unknown"
    for case in operator_cases(workload):
        found = measured.get(case.case_id)
        if found is None or not found.measured_ns or case.phase is None or (case.phase, case.role) not in ops:
            continue
        n_operators = numbers[case.phase][str(case.role)]
        time_ns = found.measured_ns / n_operators
        flops = sum(part.cost.flops for part in case.costs) / n_operators
        n_bytes = sum(part.cost.moved_bytes for part in case.costs) / n_operators
        yield {
            "test_time": run.started_at[:19] + "Z",
            "build_commit": commit,
            "backend_name": "CPU",
            "op_name": ops[case.phase, str(case.role)],
            "op_params": f"role={case.role},phase={case.phase.value},workload={workload.prefix}",
            "test_mode": "perf",
            "supported": 1,
            "passed": 1,
            "error_message": "",
            "time_us": time_ns / _NS_PER_US,
            "flops": flops / time_ns * NS_PER_S,
            "bandwidth_gb_s": n_bytes / time_ns * NS_PER_S / _BYTES_PER_GB,
            "memory_kb": round(n_bytes / _BYTES_PER_KB),
            "n_runs": len(found.samples_ns) * n_operators,
            "device_description": run.fingerprints["llama"].get("soc", "unknown"),
            "backend_reg_name": "CPU",
        }


def _literal(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"
