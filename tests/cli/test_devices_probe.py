"""``perfsuite devices probe``: a profile from a live machine, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.device.profile import find_profile
from perfsuite.device.reach import Reach
from tests.command_streams import Refused, Streams

from ..board_loopback import LoopbackBoard


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of your own, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_machine_becomes_a_device_by_its_name(here: Path, capsys: Streams) -> None:
    """The file lies where --device finds it; it is replaced with --force alone."""
    assert main(["devices", "probe", "bench", "--address", "local"]) == 0
    assert "devices/bench.toml: written from what local said" in capsys.readouterr().out
    profile = find_profile("bench")
    assert profile.reach == Reach()
    assert profile.memory_bytes is not None
    assert main(["devices", "probe", "bench"]) == 2
    assert "devices/bench.toml: is there already; --force replaces it" in capsys.readouterr().err
    assert main(["devices", "probe", "bench", "--force"]) == 0


def test_a_board_is_probed_over_ssh_before_anything_is_installed(loopback_board: LoopbackBoard, here: Path) -> None:
    """Its key and port come from the profile that reaches it, and stay in the one that is written."""
    reach = loopback_board.reach()
    (here / "devices").mkdir()
    (here / "devices" / "bench.toml").write_text(
        f'extends = "generic-ssh"\n[reach]\naddress = "{reach.address}"\nport = {reach.port}\n'
        f'identity_file = "{reach.identity_file}"\nknown_hosts_file = "{reach.known_hosts_file}"\n'
    )
    assert main(["devices", "probe", "bench", "-o", "devices/probed.toml"]) == 0
    assert find_profile("probed").reach == reach
    assert not list(loopback_board.home.iterdir())


@pytest.mark.usefixtures("here")
def test_a_device_that_nobody_can_reach_is_refused(refused: Refused) -> None:
    """An unknown name needs an address, and an address a name or a file."""
    assert "bench: is no device yet; say how it is reached" in refused(["devices", "probe", "bench"])
    assert "name the device, or the file with -o" in refused(["devices", "probe", "--address", "local"])
    assert "is no name of a device" in refused(["devices", "probe", "a/b", "--address", "local"])
