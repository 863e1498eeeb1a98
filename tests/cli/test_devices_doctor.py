"""``perfsuite devices doctor``, on this machine and over ssh."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from perfsuite import __version__
from perfsuite.cli import devices_doctor, main
from perfsuite.device.reach import Reach
from tests.command_streams import Refused, Streams
from tests.device_lock import hold_lock, owner_called

from ..board_namespaces import NamespaceBoard
from ..sys_trees import plant


def write_profile(folder: Path, reach: Reach) -> None:
    """Write the profile of a test board, which --device finds by its name ``bench``."""
    lines = ['extends = "generic-ssh"', "[reach]", f'address = "{reach.address}"', f"port = {reach.port}"]
    lines += [f'identity_file = "{reach.identity_file}"', f'known_hosts_file = "{reach.known_hosts_file}"']
    (folder / "devices").mkdir()
    (folder / "devices" / "bench.toml").write_text("\n".join([*lines, ""]))


@pytest.mark.long
def test_this_machine_is_examined(capsys: Streams) -> None:
    """The exit code says whether anything fails; each finding has its grade, what was seen and how it is fixed."""
    status = main(["devices", "doctor", "host", "--json"])
    found = {each["what"]: each for each in json.loads(capsys.readouterr().out)}
    assert status == int(any(each["grade"] == "fail" for each in found.values()))
    assert found["reach"] == {"what": "reach", "grade": "ok", "seen": "local", "mend": ""}
    assert found["suite"]["grade"] == "ok"
    assert {"governor", "load", "memory", "disk", "lock", "clock"} <= found.keys()


def test_a_device_out_of_reach_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams, refused: Refused
) -> None:
    """The exit code is 1, and the one line says what to do; a name that no profile has is exit code 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "bench.toml").write_text('extends = "generic-ssh"\n[reach]\naddress = "no.invalid"\n')
    assert main(["devices", "doctor", "bench"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("      bench  seen")  # as the other tables: no lines, no margin
    assert "see address in [reach] of its profile" in out
    assert "bench: 1 fail, 0 warn, 0 ok" in out
    assert "no such device" in refused(["devices", "doctor", "no-such-board"])


def test_a_board_is_examined_over_ssh(
    start_board: Callable[..., NamespaceBoard],
    own_bundle: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Streams,
) -> None:
    """What its own /sys says is reported: its clocks, its zones, and the governor that its user may set."""
    plant("orangepi5", tmp_path)
    (tmp_path / "sys/devices/system/cpu/online").write_text("0-7\n")
    board = start_board(sys_tree=tmp_path / "sys")
    board.bring_suite(own_bundle)
    write_profile(tmp_path, board.reach())
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "devices" / "bench.toml").open("a") as profile:
        profile.write('[conditions]\ngovernor = "performance"\nstart_below_celsius = 40.0\n')
    main(["devices", "doctor", "bench", "--json"])
    found = {each["what"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["suite"]["grade"] == found["llama.cpp"]["grade"] == found["lock"]["grade"] == "ok"
    assert found["governor"]["seen"] == "ondemand; the profile asks for performance, which root may set"
    assert found["clocks"]["seen"].startswith("from 0 on: 1.80 of 1.80 GHz; from 4 on: 2.40 of 2.40 GHz")
    assert found["temperature"]["grade"] == "warn"
    assert found["clock"]["grade"] == "ok"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Return what is asked while somebody has this machine, whose lock is one of the test's own."""
    found: list[str] = []
    monkeypatch.setenv("PERFSUITE_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(devices_doctor, "_opencl", lambda *_: found.append("OpenCL") or (None, "none"))
    monkeypatch.setattr("perfsuite.cli.devices_doctor.ebpf_obstacle", lambda _: found.append("eBPF"))
    return found


OWNER = owner_called("ann", run_id="r1", purpose="pytest --device=bench")


def test_nothing_is_started_beside_a_run(asked: list[str], tmp_path: Path) -> None:
    """While somebody has the device, no OpenCL driver and no eBPF helper is asked; else both."""
    with hold_lock(OWNER, folder=tmp_path):
        beside = devices_doctor.own_state(None)
    assert beside.lock is not None
    assert (beside.is_busy, beside.lock.user, asked) == (True, "ann", [])
    assert beside.opencl_problem is None
    assert beside.installed.suite_version == __version__
    assert not devices_doctor.own_state(None).is_busy
    assert asked == ["OpenCL", "eBPF"]
