"""The child process, run in this one with its measuring replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from perfsuite.errors import GgufError
from perfsuite.measure.launch import FAILURE_MARK, PARENT_NAME
from perfsuite.measure.native import find_worker
from perfsuite.measure.plan import IndependentPlan, dump_plan
from perfsuite.measure.worker import main
from perfsuite.records.codec import pack, unpack
from perfsuite.records.own_files import own_python

from .conftest import is_gone, wait_until

PLAN_NAME, RECORD_NAME = "plan.msgpack", "record.msgpack"

#: Starts a worker as a run does, says which, and waits for it.
_RUN = f"""
import os, subprocess, sys
environment = {{**os.environ, {PARENT_NAME!r}: str(os.getpid())}}
with subprocess.Popen(sys.argv[1:], env=environment, start_new_session=True) as worker:
    print(worker.pid, flush=True)
"""

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


@pytest.mark.parametrize("language", ["python", "native"])
def test_a_worker_ends_with_the_run_that_is_killed(tmp_path: Path, engine_cache: Path, language: str) -> None:
    """The kernel kills it, whatever it is at: here it waits for its plan, which comes by a pipe."""
    os.mkfifo(tmp_path / PLAN_NAME)
    worker = (
        own_python("-m", "perfsuite.measure.worker") if language == "python" else (find_worker(engine_cache), "run")
    )
    command = [sys.executable, "-c", _RUN, *worker, tmp_path / PLAN_NAME, tmp_path / RECORD_NAME]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        with (tmp_path / PLAN_NAME).open("wb"):  # opens as soon as the worker reads
            assert not is_gone(pid)
            run.kill()
            assert wait_until(lambda: is_gone(pid), limit_s=1.0)
