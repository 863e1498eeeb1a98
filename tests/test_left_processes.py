"""What tests leave running is found by the test that started it, and ended."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from . import left_processes
from .left_processes import RUN, end, left_by_run, left_by_tests

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


def test_without_a_run_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that belongs to no run ends nobody's."""
    monkeypatch.delenv(RUN)
    assert left_by_run() == []


def test_a_run_knows_all_that_it_started_but_not_itself() -> None:
    """The process that asks, and those that started it, are no leftovers."""
    with subprocess.Popen(["sleep", "600"]) as started:
        found = {each.pid for each in left_by_run()}
        started.kill()
    assert started.pid in found
    assert not found & {os.getpid(), os.getppid()}


def test_a_process_of_a_fixture_is_not_a_tests() -> None:
    """What a fixture of a module starts belongs to its setup, which ends it later."""
    environment = {**os.environ, "PYTEST_CURRENT_TEST": f"{FILE}::test_x (setup)"}
    with subprocess.Popen(["sleep", "600"], env=environment) as started:
        assert left_by_tests(FILE) == []
        started.kill()
