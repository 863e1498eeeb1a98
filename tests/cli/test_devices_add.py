"""``perfsuite devices add``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.device.profile import find_profile
from perfsuite.device.reach import Reach
from tests.command_streams import Refused, Streams


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and a user without profiles."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def add(*arguments: str) -> None:
    assert main(["devices", "add", *arguments]) == 0


def test_a_board_like_another_one(here: Path, capsys: Streams) -> None:
    """The file says how it is reached; the rest is taken over, and what to do next is reported."""
    add("desk-pi", "--like", "rubikpi", "--address", "me@desk:2222")
    desk, rubikpi = find_profile("desk-pi"), find_profile("rubikpi")
    assert desk.reach == Reach(way="ssh", address="me@desk", port=2222)
    assert (desk.kind, desk.conditions) == ("rubikpi", rubikpi.conditions)
    out = capsys.readouterr().out
    assert out.startswith("devices/desk-pi.toml: desk-pi, reached by ssh me@desk:2222\n")
    assert "perfsuite devices setup desk-pi" in out
    assert "perfsuite devices doctor desk-pi" in out
    assert "pytest --device=desk-pi" in out
    assert sorted(path.name for path in (here / "devices").iterdir()) == ["desk-pi.toml"]


def test_nothing_but_a_name_is_any_machine_behind_ssh(here: Path) -> None:
    """Its configuration may know the name; a phone is known by its serial number."""
    add("lab")
    assert find_profile("lab").reach == Reach(way="ssh", address="lab")
    assert (here / "devices" / "lab.toml").read_text().count("[reach]") == 0
    add("phone", "--like", "pixel8pro", "--address", "adb:0A1B2C")
    assert find_profile("phone").reach == Reach(way="adb", address="0A1B2C", home="/data/local/tmp/perfsuite")


def test_every_option_arrives(here: Path) -> None:
    """Files are named from the working folder, so that they are found from any; a key in the home stays there."""
    (here / "key").write_text("a key")
    files = ("--identity-file", "key", "--known-hosts-file", "known hosts")
    add("lab", *files, "--home", "/opt/per f$(x)suite", "--description", 'the "lab"\'s \\ board')
    lab = find_profile("lab")
    assert lab.reach.identity_file == str(here / "key")
    assert lab.reach.known_hosts_file == str(here / "known hosts")
    assert lab.reach.home == "/opt/per f$(x)suite"
    assert lab.description == 'the "lab"\'s \\ board'
    (here / "home" / ".ssh").mkdir(parents=True)
    (here / "home" / ".ssh" / "lab").write_text("a key")
    add("lab", "--identity-file", "~/.ssh/lab", "--force")
    assert '"~/.ssh/lab"' in (here / "devices" / "lab.toml").read_text()
    assert find_profile("lab").reach.identity_file == str(here / "home" / ".ssh" / "lab")


def test_it_is_not_overwritten(here: Path, refused: Refused) -> None:
    add("lab", "--address", "ssh:one")
    told = refused(["devices", "add", "lab", "--address", "ssh:two"])
    assert told.endswith("devices/lab.toml: is there already; choose another name, or replace it with --force\n")
    assert find_profile("lab").reach.address == "one"
    add("lab", "--address", "ssh:two", "--force")
    assert find_profile("lab").reach.address == "two"


def test_the_users_own_folder(here: Path, capsys: Streams) -> None:
    """There it holds in any folder; the working folder's goes before it, which is reported."""
    add("lab", "--user")
    assert (here / "config" / "perfsuite" / "devices" / "lab.toml").is_file()
    assert not (here / "devices").exists()
    assert "pytest --device=lab" in capsys.readouterr().out
    add("lab")
    capsys.readouterr()
    add("lab", "--user", "--force")
    assert "devices/lab.toml has the same name, and goes before it in this folder" in capsys.readouterr().out


def test_a_shipped_name_may_be_ones_own(here: Path) -> None:
    """It takes over the one that it hides; a phone with Termux's sshd has another folder than adb's shell."""
    add("rubikpi", "--like", "rubikpi", "--address", "me@desk")
    assert find_profile("rubikpi").reach.address == "me@desk"
    assert find_profile("rubikpi").conditions.governor == "performance"
    add("phone", "--like", "pixel8pro", "--address", "ssh:u0_a1@phone:8022")
    phone = find_profile("phone")
    assert phone.reach == Reach(way="ssh", address="u0_a1@phone", port=8022)
    assert phone.conditions == find_profile("pixel8pro").conditions
    add("board", "--like", "rubikpi", "--address", "adb")
    assert find_profile("board").reach.home == "/data/local/tmp/perfsuite"


def test_a_profile_of_ones_own_is_removed(here: Path, capsys: Streams, refused: Refused) -> None:
    """Shipped ones stay, and no other file can be named."""
    add("rubikpi", "--like", "rubikpi", "--address", "me@desk")
    (here / "pyproject.toml").write_text("")
    assert main(["devices", "remove", "rubikpi"]) == 0
    assert capsys.readouterr().out.endswith("devices/rubikpi.toml: removed\n")
    assert find_profile("rubikpi").reach.address == "rubikpi"
    for name in ("rubikpi", "../pyproject"):
        assert f"{name}: no profile of your own has this name" in refused(["devices", "remove", name])
    assert (here / "pyproject.toml").exists()


@pytest.mark.parametrize("name", ["../x", "a/b", "", "$(x)", "x" * 65])
def test_a_name_is_no_path(name: str, here: Path, refused: Refused) -> None:
    """The error says what a name is, and nothing is written."""
    assert "is no name of a device; expected letters, digits, " in refused(["devices", "add", name])
    assert list(here.rglob("*.toml")) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--like", "../host"], "devices/x.toml: extends is '../host', expected a name "),
        (["--address=-oProxyCommand=reboot"], "--address=-oProxyCommand=reboot: '-oProxyCommand=reboot' is not a way"),
        (["--description", "a\nb"], "devices/x.toml: description is 'a\\nb', expected a line of text"),
    ],
)
def test_what_would_be_no_profile_is_refused(arguments: list[str], told: str, here: Path, refused: Refused) -> None:
    assert refused(["devices", "add", "x", *arguments]).startswith(f"perfsuite: error: {told}")
    assert not (here / "devices").exists()


def test_a_board_is_added_listed_and_shown(tmp_path: Path) -> None:
    """The whole way, as in a shell, with a home of its own."""
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def run(*words: str) -> str:
        line = [sys.executable, "-m", "perfsuite.cli", "devices", *words]
        done = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    run("add", "desk-pi", "--like", "rubikpi", "--address", "me@desk:2222")
    assert "ssh me@desk:2222" in run()
    assert "devices/desk-pi.toml" in run("show", "desk-pi")
