"""What an installed suite says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite import __version__
from perfsuite.cli import own_suite
from perfsuite.cli.own_suite import own_state
from tests.device_lock import hold_lock, owner_called


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return what is asked while somebody has this machine, whose lock is one of the test's own."""
    found: list[str] = []
    monkeypatch.setenv("PERFSUITE_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(own_suite, "_opencl", lambda *_: found.append("OpenCL") or (None, "none"))
    monkeypatch.setattr("perfsuite.measure.ebpf_helper.ebpf_obstacle", lambda _: found.append("eBPF"))
    return found


OWNER = owner_called("ann", run_id="r1", purpose="pytest --device=bench")


def test_nothing_is_started_beside_a_run(asked: list[str], tmp_path: Path) -> None:
    """While somebody has the device, no OpenCL driver and no eBPF helper is asked; else both."""
    with hold_lock(OWNER, folder=tmp_path):
        beside = own_state(None)
    assert beside.lock is not None
    assert (beside.is_busy, beside.lock.user, asked) == (True, "ann", [])
    assert beside.opencl_problem is None
    assert beside.installed.suite_version == __version__
    assert not own_state(None).is_busy
    assert asked == ["OpenCL", "eBPF"]
