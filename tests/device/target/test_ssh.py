"""The link over OpenSSH's client, to a real sshd: what is shared, what is refused, and how each fault is reported."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target
from perfsuite.device.target.shell_target import Target
from perfsuite.device.target.ssh import ALIVE_COUNT, SshLink, explained
from perfsuite.errors import DeviceError, LinkError

from ...board_namespaces import NamespaceBoard
from .test_shell import HARD, SHELLS

BOARD = Reach(way="ssh", address="root@board")


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        (
            "ssh: connect to host board port 22: Connection timed out\r\n",
            "connection timed out (board port 22); is the dev",
        ),
        ("ssh: connect to host board port 22: No route to host", "no route to host (board port 22); is the device up"),
        ("Connection timed out during banner exchange", "no sshd answers there (Connection timed out"),
        ("client_loop: send disconnect: Broken pipe", "the link was lost in the middle"),
        ("Timeout, server board not responding.", "the link was lost in the middle"),
        ("/home/me/.ssh/config line 3: Bad configuration option: x", "OpenSSH refuses its configuration: /home/me"),
        ("Bad owner or permissions on /home/me/.ssh/config", "OpenSSH refuses its configuration: Bad owner"),
        ("root@board: Permission denied (publickey,password).", "no key of yours is accepted (publickey,password;"),
        ("", "the link was lost in the middle"),
        ("something\nelse\n", "run it again; the last words: else"),
    ],
)
def test_words_are_explained(words: str, meaning: str) -> None:
    told = explained(words, BOARD)
    assert meaning in told
    assert "\n" not in told


def test_a_command_does_not_speak_for_ssh() -> None:
    told = explained("cat: x: Permission denied\ncurl: Connection refused\nls: Could not resolve hostname", BOARD)
    assert told.startswith("the link was lost in the middle")


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    board = request.getfixturevalue("fresh_board" if "fresh_board" in request.fixturenames else "board")
    opened = open_target(board.reach())
    yield opened
    opened.close()


def complaint_of(reach: Reach) -> str:
    target = open_target(reach)
    with pytest.raises(LinkError) as failed:
        target.run(["true"])
    target.close()
    assert "\n" not in str(failed.value)
    assert str(failed.value).startswith(f"{reach.text}: ")
    return str(failed.value).removeprefix(f"{reach.text}: ")


def test_commands_share_a_connection(fresh_board: NamespaceBoard, target: Target) -> None:
    target.put(Path(__file__), "here")
    process = target.start(["cat"])
    assert target.run(["true"]).status == target.run(["true"]).status == 0
    log = (fresh_board.folder / "sshd.log").read_text()
    assert log.count("Accepted publickey") == 1
    process.communicate(timeout=20)
    assert fresh_board.processes("^sshd: root@")
    target.close()
    target.close()
    assert gone(lambda: fresh_board.processes("^sshd: root@"))
    with pytest.raises(LinkError, match="the link was closed"):
        target.run(["true"])


def test_nothing_is_left_of_a_connection(
    board: NamespaceBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    link = SshLink(board.reach())
    folder = link._folder.path
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(str(folder)) < 80
    link.close()
    assert not folder.exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_words_arrive_behind_every_login_shell_of_a_device(fresh_board: NamespaceBoard, shell: str) -> None:
    if (path := shutil.which(shell)) is None:
        pytest.skip(f"boards: there is no {shell}; 'make test-needs' installs it")
    fresh_board.use_shell(path)
    target = open_target(fresh_board.reach())
    script = 'printf "%s\\0" "$@"; printf "%s\\0" "$HARD"'
    told = target.run(["sh", "-c", script, "sh", *HARD], environment={"HARD": "".join(HARD)})
    expected = [word.encode("utf-8", "surrogateescape") for word in (*HARD, "".join(HARD))]
    assert told.output.split(b"\0")[:-1] == expected
    assert target.run(["sh", "-c", 'echo "$SHELL"']).text == path
    target.close()


def test_variables_of_the_desk_stay_at_the_desk(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANG", "LC_ALL", "LC_SECRET", "PERF_DESK"):
        monkeypatch.setenv(name, "en_GB.UTF-8")
    assert "en_GB" not in target.run(["env"]).text


def test_what_the_configuration_sends_stays_at_the_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that OpenSSH's configuration would send are hidden from it, except those that it runs by itself."""
    sending = "echo sendenv 'PERF_D?SK_*'; echo sendenv HOME; exit"
    (tmp_path / "ssh").write_text(f'#!/bin/sh\n[ "$1" != -G ] || {{ {sending}; }}\nenv; echo mark >&2\n')
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name in ("PERF_DESK_", "PERF_DESK_A", "PERF_DESKS", "LC_X"):
        monkeypatch.setenv(name, "a b\nLC_Y=c")
    link = SshLink(Reach(way="ssh", address="board"))
    told = subprocess.run(link.command_line("true"), capture_output=True, text=True, check=True, timeout=20)
    names = {line.partition("=")[0] for line in told.stdout.splitlines()}
    assert {"HOME", "PATH", "PERF_DESKS"} <= names
    assert not {"PERF_DESK_", "PERF_DESK_A", "LC_X"} & names


@pytest.mark.parametrize("address", ["", "-oProxyCommand=id", "a b", "a\nb", "root@a\tb", "a\x1b"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(DeviceError, match="no address for ssh; name a host, user@host"):
        open_target(Reach(way="ssh", address=address))


def test_an_unknown_host_is_told(board: NamespaceBoard, tmp_path: Path) -> None:
    known = tmp_path / "known hosts"
    told = complaint_of(replace(board.reach(), known_hosts_file=str(known)))
    assert told == (
        "its host key is not known; look at it and accept it once: "
        f"ssh -p 2222 -o 'UserKnownHostsFile={known}' root@{board.address}"
    )
    assert not known.exists()


def test_a_changed_host_key_is_told(fresh_board: NamespaceBoard) -> None:
    reach = fresh_board.reach()
    open_target(reach).run(["true"])
    fresh_board.change_host_key()
    told = complaint_of(reach)
    assert f"its host key is not the one that {reach.known_hosts_file} has for it" in told
    assert f"ssh-keygen -f {reach.known_hosts_file} -R '[{fresh_board.address}]:2222'" in told
    fresh_board.files.trust()
    assert open_target(reach).run(["true"]).status == 0


def test_keys_that_do_not_open_are_told(board: NamespaceBoard, tmp_path: Path) -> None:
    reach = board.reach()
    wrong, open_key = tmp_path / "wrong", tmp_path / "open"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(wrong)], check=True)
    shutil.copy(str(reach.identity_file), open_key)
    open_key.chmod(0o644)
    assert f"the key {wrong} is not accepted (publickey" in (
        told := complaint_of(replace(reach, identity_file=str(wrong)))
    )
    assert f"; give it one: ssh-copy-id -p 2222 -o UserKnownHostsFile={reach.known_hosts_file} root@" in told
    assert "is accepted (publickey" in complaint_of(replace(reach, identity_file=None))
    assert "there is no key" in complaint_of(replace(reach, identity_file=str(tmp_path / "missing")))
    assert f"chmod 600 {open_key}" in complaint_of(replace(reach, identity_file=str(open_key)))
    assert "is not accepted" in complaint_of(replace(reach, address=f"nobody@{board.address}"))


def test_hosts_that_do_not_answer_are_told(board: NamespaceBoard) -> None:
    assert complaint_of(replace(board.reach(), port=1)) == (
        f"connection refused ({board.address} port 1); nothing listens there: is sshd running, is the port right?"
    )
    told = complaint_of(replace(board.reach(), address="root@no-such-host.invalid"))
    assert told.startswith("no host no-such-host.invalid (")


def test_a_rebooted_device_is_told_and_reached_again(fresh_board: NamespaceBoard, target: Target) -> None:
    assert target.run(["true"]).status == 0
    process = target.start(["cat"])
    assert until(lambda: bool(fresh_board.processes("^cat")))
    once(lambda: bool(fresh_board.processes("^sleep")), fresh_board.reboot)
    since = time.monotonic()
    with pytest.raises(LinkError, match="the link was lost in the middle: the device rebooted"):
        target.run(["sleep", "600"])
    assert time.monotonic() - since < 300
    _, errors = process.communicate(timeout=60)
    assert "the link was lost in the middle" in target.link_complaint(errors)
    assert until(lambda: works(target))


def test_a_cut_link_is_lost_within_its_limit(fresh_board: NamespaceBoard) -> None:
    target = Target(SshLink(fresh_board.reach(), alive_interval_s=1))
    assert target.run(["true"]).status == 0
    process = target.start(["cat"])
    assert until(lambda: bool(fresh_board.processes("^cat")))
    once(lambda: bool(fresh_board.processes("^sleep")), fresh_board.link_down)
    since = time.monotonic()
    with pytest.raises(LinkError, match="the link was lost in the middle"):
        target.run(["sleep", "60"])
    assert time.monotonic() - since < (ALIVE_COUNT + 1) * 1 + 5
    process.communicate(timeout=5)
    with pytest.raises(LinkError, match=r"no route to host|connection timed out"):
        target.run(["true"])
    fresh_board.link_up()
    assert target.run(["true"]).status == 0
    target.close()


def once(condition: Callable[[], bool], do: Callable[[], object] = lambda: None) -> None:
    threading.Thread(target=lambda: until(condition) and do(), daemon=True).start()


def until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return holds


def gone(listed: Callable[[], tuple[int, ...]]) -> bool:
    return until(lambda: not listed())


def works(target: Target) -> bool:
    try:
        return target.run(["true"]).status == 0
    except LinkError:
        return False
