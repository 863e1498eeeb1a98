"""What an installed suite says of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite import __version__
from perfsuite.cli import devices_installed
from perfsuite.cli.devices_installed import own_account, own_state
from perfsuite.device.lock import hold_lock
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.setup.needs import QUESTION, read_installed


def test_the_suite_says_what_it_is_in_one_line() -> None:
    """The answer of a process is that of this one, and is read as it is meant."""
    done = subprocess.run([sys.executable, *QUESTION], capture_output=True, text=True, check=True, timeout=60)
    assert read_installed(json.loads(done.stdout)) == read_installed(own_account())
    assert read_installed(own_account()).suite_version == __version__


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return what is asked while somebody has this machine, whose lock is one of the test's own."""
    found: list[str] = []
    monkeypatch.setattr("perfsuite.device.lock.lock_folders", lambda: (tmp_path,))
    monkeypatch.setenv("PERFSUITE_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(devices_installed, "_opencl", lambda *_: found.append("OpenCL") or (None, "none"))
    monkeypatch.setattr("perfsuite.measure.ebpf_helper.ebpf_obstacle", lambda _: found.append("eBPF"))
    return found


OWNER = LockOwner.here(user="ann", host="desk", run_id="r1", purpose="pytest --device=bench")


def test_nothing_is_started_beside_a_run(asked: list[str]) -> None:
    """While somebody has the device, no OpenCL driver and no eBPF helper is asked; else both."""
    with hold_lock(OWNER):
        beside = own_state(None)
    assert (beside["is_busy"], beside["lock"]["user"], asked) == (True, "ann", [])
    assert beside["opencl_problem"] is None
    assert not own_state(None)["is_busy"]
    assert asked == ["OpenCL", "eBPF"]
