"""``perfsuite devices unlock``, on this machine and over a link that is answered by a made-up device."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.cli import devices_setup, main
from perfsuite.device.governors import FILE_NAME, STATE_FOLDER
from perfsuite.device.lock_owner import LockOwner
from perfsuite.device.profile import find_profile
from perfsuite.device.reach import Reach
from perfsuite.device.setup.bundle_scripts import OLD_SETUP, suite_command
from perfsuite.device.target.opening import open_target
from perfsuite.device.target.protocol import Completed
from perfsuite.errors import DeviceError, LockedError
from tests.command_streams import Streams
from tests.device_lock import held_by, hold_lock, lock_holder, owner_called

from ..board_namespaces import NamespaceBoard

OWNER = owner_called("anna", run_id="r1", purpose="pytest --device=board")
BOARD = replace(find_profile("host"), name="board", reach=Reach(way="ssh", address="pi@board"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the lock of this machine, and what must be restored on it, be in folders of the test's own."""
    monkeypatch.setenv("PERFSUITE_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


class Link:
    """A way to a device that answers one thing, and notes what it was asked."""

    def __init__(self, status: int, output: bytes, errors: bytes = b"") -> None:
        self.completed = Completed(status=status, output=output, errors=errors)
        self.asked: list[Sequence[str]] = []
        self.is_closed = False

    def run(self, command: Sequence[str]) -> Completed:
        """Answer."""
        self.asked.append(command)
        return self.completed

    def close(self) -> None:
        """Note it."""
        self.is_closed = True


def linked(monkeypatch: pytest.MonkeyPatch, status: int, output: bytes, errors: bytes = b"") -> Link:
    """Let the way to every device be one that answers so."""
    link = Link(status, output, errors)
    monkeypatch.setattr(devices_setup, "open_target", lambda _: link)
    monkeypatch.setattr(devices_setup, "find_profile", lambda *_, **__: BOARD)
    return link


def line(**plain: Any) -> bytes:
    """Return an answer as the device prints it."""
    return json.dumps(plain).encode() + b"\n"


def test_a_free_machine_is_told(capsys: Streams, folder: Path) -> None:
    """Where nobody has it, that is said; what a killed run has left is restored."""
    kept = folder / "cache" / "perfsuite" / STATE_FOLDER / FILE_NAME
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"boot_id": "another", "process_id": 2**22 + 1, "process_start": 1, "changes": []}))
    assert main(["devices", "unlock", "host"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "host: nobody has it"
    assert second.startswith(f"{kept}: from before the last start of the device")


def test_a_living_run_is_not_ended(capsys: Streams, folder: Path) -> None:
    """A run that is under way keeps the device, and the line names --force."""
    with hold_lock(OWNER, folder=folder):
        assert main(["devices", "unlock", "host"]) == 2
        assert lock_holder(folder) is not None
    told = capsys.readouterr().err
    assert told.startswith("perfsuite: error: host: held by anna from desk (pytest --device=board)")
    assert "--force" in told
    assert told.count("\n") == 1


def test_force_ends_the_run(capsys: Streams, folder: Path) -> None:
    """The process that had the lock is gone, and named."""
    with held_by(folder, "anna") as process:
        assert main(["devices", "unlock", "host", "--force"]) == 0
        assert process.wait(10) == -signal.SIGTERM
        assert lock_holder(folder) is None
    line, note = capsys.readouterr().out.splitlines()
    assert line.startswith("host: was held by anna")
    assert line.endswith(f"process {process.pid}; ended")
    assert note.startswith("the run before this one was killed: anna")


def test_a_board_is_asked_over_its_link(monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """The program of its bundle is asked; the answer is shown, and the link is closed."""
    link = linked(monkeypatch, 0, line(lock=OWNER.to_plain(), notes=["scaling_governor: restored to 'schedutil'"]))
    assert main(["devices", "unlock", "board", "--force"]) == 0
    assert link.asked == [suite_command("~/.local/share/perfsuite", "lock", "break", "--force")]
    assert link.is_closed
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("board: was held by anna from desk (pytest --device=board)")
    assert second == "scaling_governor: restored to 'schedutil'"


def test_a_boards_refusal_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the device says against it is stated with the device's name; lines and escapes in it are written out."""
    linked(monkeypatch, 2, line(error="held by anna; ..."))
    with pytest.raises(LockedError, match=r"^board: held by anna"):
        devices_setup.lock_answer(BOARD, ("break",))
    linked(monkeypatch, 2, line(error="held by a\nb\x1b[31m"))
    with pytest.raises(LockedError) as told:
        devices_setup.lock_answer(BOARD, ("break",))
    assert str(told.value) == r"board: held by a\nb\x1b[31m"


@pytest.mark.parametrize(
    ("status", "output", "told"),
    [
        (127, b"", "the suite is not on the device "),
        (1, b"", ".*No module named x"),
        (1, line(lock={**OWNER.to_plain(), "pid": 0}, notes=[]), ".*No module named x"),
    ],
)
def test_a_board_without_the_suite_or_with_another_is_told(
    monkeypatch: pytest.MonkeyPatch, status: int, output: bytes, told: str
) -> None:
    """The line has the device's last words, and says how the suite gets there."""
    linked(monkeypatch, status, output, b"/usr/bin/python: No module named x")
    with pytest.raises(DeviceError, match=rf"board: {told}.*perfsuite devices setup board'"):
        devices_setup.lock_answer(BOARD, ("break",))


def test_the_last_line_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell, or a Python, may have something to say first; a later suite may say more."""
    later = {**OWNER.to_plain(), "more": 1}
    linked(monkeypatch, 0, b"warning: a line\n{}\n" + line(lock=later, notes=["restored"], more=2))
    assert devices_setup.lock_answer(BOARD, ("break",)) == {"lock": OWNER.to_plain(), "notes": ["restored"]}


def test_a_board_that_was_set_up_in_python_is_told(tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    with pytest.raises(DeviceError, match=rf"^board: {OLD_SETUP} \(local, .*\); run 'perfsuite devices setup board'$"):
        devices_setup._asked("board", Reach(way="local", home=str(tmp_path)), ("state",))


#: Has the lock of the machine that it runs on until its input ends.
_HOLDER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from tests.device_lock import hold_lock
with hold_lock(folder=Path("/run/lock")):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_on(board: NamespaceBoard) -> Iterator[subprocess.Popen[bytes]]:
    """Let a process on a board, started over ssh, have its lock."""
    target = open_target(board.reach())
    process = target.start([sys.executable, "-c", _HOLDER])
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        process.kill()
        process.communicate()
        target.close()


def test_a_real_board_is_unlocked_over_ssh(fresh_board: NamespaceBoard, own_bundle: Path) -> None:
    """A living holder there is named and left; with force it is ended, and nobody has the board."""
    fresh_board.bring_suite(own_bundle)
    profile = replace(BOARD, reach=fresh_board.reach())
    with held_on(fresh_board) as process:
        with pytest.raises(LockedError, match=r"^board: held by anna from desk .*; wait until it has ended, or end it"):
            devices_setup.lock_answer(profile, ("break",))
        assert process.poll() is None
        owner = LockOwner.from_plain(devices_setup.lock_answer(profile, ("break", "--force"))["lock"])
        assert (owner.user, process.wait(10) != 0) == ("anna", True)
    assert devices_setup.lock_answer(profile, ("state",)) == {"lock": None, "notes": []}


def test_a_board_that_started_again_is_free(fresh_board: NamespaceBoard, own_bundle: Path) -> None:
    fresh_board.bring_suite(own_bundle)
    with held_on(fresh_board):
        fresh_board.reboot()
    profile = replace(BOARD, reach=fresh_board.reach())
    assert devices_setup.lock_answer(profile, ("state",))["lock"] is None
