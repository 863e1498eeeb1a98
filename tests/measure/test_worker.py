"""The child process, run in this one with its measuring replaced."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from perfsuite.errors import GgufError
from perfsuite.measure.launch import FAILURE_MARK, PLAN_NAME, RECORD_NAME
from perfsuite.measure.plan import IndependentPlan, dump_plan
from perfsuite.measure.worker import main
from perfsuite.records.codec import pack, unpack

PLAN = IndependentPlan(n_threads=2, working_set_bytes=1, budget_ms=1)


def test_a_known_failure_is_one_marked_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = Mock(side_effect=GgufError("x.gguf: cut\nat   byte 7"))
    monkeypatch.setattr("perfsuite.measure.worker._RUNNERS", {IndependentPlan: failing})
    (tmp_path / PLAN_NAME).write_bytes(dump_plan(PLAN))
    assert main([str(tmp_path / PLAN_NAME), str(tmp_path / RECORD_NAME)]) == 1
    assert capsys.readouterr().out == f"\n{FAILURE_MARK}x.gguf: cut at byte 7\n"
    assert not (tmp_path / RECORD_NAME).exists()


def test_a_plan_of_another_suite_is_a_known_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan_path = tmp_path / PLAN_NAME
    plan_path.write_bytes(pack({**unpack(dump_plan(PLAN)), "suite_version": "0.0.0"}))
    assert main([str(plan_path), str(tmp_path / "record")]) == 1
    assert capsys.readouterr().out.startswith(f"\n{FAILURE_MARK}plan was made by perfsuite 0.0.0")
