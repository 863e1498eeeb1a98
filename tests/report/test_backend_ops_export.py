"""Operators of a run as rows of test-backend-ops."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import main
from perfsuite.expectation.cases import operator_cases
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.report.backend_ops_export import backend_ops_sql
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve
from tests.plain_runs import plain_run_of

PREFIX = "smollm2-135m-l2-q8_0/siso"
FINGERPRINT = {"soc": "it's a processor", "flash_attn": "on", "kv_types": "f16/f16"}


def case(name: str, measured_ns: int | None, outcome: str = "pass") -> dict[str, Any]:
    """Return a case of run.json, as far as it is read."""
    samples_ns = [measured_ns] * 3 if measured_ns else []
    return {
        "id": f"operator/{PREFIX}/{name}",
        "kind": "operator",
        "measured_ns": measured_ns,
        "samples_ns": samples_ns,
        "outcome": outcome,
    }


def run_of(tmp_path: Path, *cases: dict[str, Any], **fields: Any) -> Path:
    path = tmp_path / "run.json"
    told = {
        "workload": PREFIX,
        "started_at": "2026-11-25T01:30:32+00:00",
        "subject": {"llama": "ggml 0.25.3 0c1e570, build 80142eed26e01859"},
        "fingerprint": {"llama": FINGERPRINT},
    }
    plain = plain_run_of(*cases, **told | fields)
    path.write_text(json.dumps(plain))
    return path


def rows_of(text: str) -> list[dict[str, Any]]:
    """Carry the statements out, as their reader does."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(text)
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM test_backend_ops")]


def test_an_operator_is_one_of_its_layers(tmp_path: Path) -> None:
    """Its time is a layer's, with the FLOPs and bytes of the analytical graph; what was not measured is left out."""
    path = run_of(
        tmp_path,
        case("decode/ffn_up", 2_000_000),
        case("decode/rest", 5000),
        case("decode/ffn_gate", 7, "invalid"),
        case("decode/Qcur", None),
        case("decode/no_such_role", 100),
    )
    (row,) = rows_of(backend_ops_sql(path, cache_dir=tmp_path))
    workload = llama_workload(resolve("smollm2-135m-l2-q8_0", cache_dir=tmp_path), find_scenario("siso"))
    costs = next(each.costs for each in operator_cases(workload) if each.case_id.endswith("decode/ffn_up"))
    assert (row["op_name"], row["op_params"]) == ("MUL_MAT", f"role=ffn_up,phase=decode,workload={PREFIX}")
    assert (row["time_us"], row["n_runs"], row["build_commit"]) == (1000.0, 6, "0c1e570")
    assert row["flops"] == pytest.approx(sum(each.cost.flops for each in costs) / 2e-3)
    assert row["bandwidth_gb_s"] == pytest.approx(sum(each.cost.moved_bytes for each in costs) / 2e-3 / 1e9)
    assert (row["supported"], row["passed"], row["test_mode"]) == (1, 1, "perf")
    assert (row["test_time"], row["device_description"]) == ("2026-11-25T01:30:32Z", "it's a processor")


def test_a_build_is_named_as_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run_of(tmp_path, case("decode/ffn_up", 100), subject={"llama": "ggml 0.0.0 bundle, build 58dc402c07ffa4ed"})
    assert rows_of(backend_ops_sql(path, cache_dir=tmp_path))[0]["build_commit"] == "58dc402c07ffa4ed"
    assert main(["export", "backend-ops-sql", str(path), "--build-commit=mine"]) == 0
    assert rows_of(capsys.readouterr().out)[0]["build_commit"] == "mine"
