"""What tests leave running is found by the test that started it, and ended."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from . import left_processes
from .left_processes import RUN, end, left_by_tests

FILE = "tests/test_left_processes.py"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_processes, "_GRACE_S", 0.0)


def test_a_process_that_outlives_its_parent_is_found_and_ended() -> None:
    """It is known by the test that started it, whoever its parent is now."""
    orphan = int(subprocess.run(["sh", "-c", "sleep 600 >&- 2>&- & echo $!"], capture_output=True, check=True).stdout)
    until = time.monotonic() + 20
    while (found := left_by_tests(FILE)[0]).command != "sleep 600" and time.monotonic() < until:
        time.sleep(0.01)  # the shell's child is still the shell
    assert (found.pid, found.command) == (orphan, "sleep 600")
    assert "test_a_process_that_outlives_its_parent_is_found_and_ended" in found.test
    end([found, found._replace(pid=2**22 + 1)])
    while (left := left_by_tests(FILE)) and time.monotonic() < until:
        time.sleep(0.01)  # the kernel takes a moment
    assert left == []


def test_others_processes_are_left_alone() -> None:
    """One of another file's tests, and one of another run, is nobody's here."""
    others = [{"PYTEST_CURRENT_TEST": "tests/test_units.py::test_x (call)"}, {RUN: "another"}]
    started = [subprocess.Popen(["sleep", "600"], env={**os.environ, **each}) for each in others]
    try:
        assert left_by_tests(FILE) == []
    finally:
        for each in started:
            each.kill()
            each.wait()
