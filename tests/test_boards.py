"""The test boards themselves: what a test does to one is what happens, and nothing of it is left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from perfsuite.device.target.opening import open_target
from perfsuite.device.target.shell_target import Target
from perfsuite.device.work_folder import sweep
from tests.board_namespaces import clock_library

from .board_loopback import LoopbackBoard, loopback_obstacle
from .board_namespaces import NamespaceBoard, board_obstacle
from .farm_daemons import awaited

ROOT = Path(__file__).resolve().parent.parent


def opened(board: NamespaceBoard | LoopbackBoard) -> Target:
    return open_target(board.reach())


def traces_of(board: NamespaceBoard, inside: tuple[int, ...]) -> list[str]:
    """What is here of a board: its cable, its mounts, its processes, its folder."""
    mounts = Path("/proc/mounts").read_text().splitlines()
    files = [Path(f"/sys/class/net/{board.interface}"), *(Path(f"/proc/{pid}") for pid in inside), board.folder]
    return [*(str(each) for each in files if each.exists()), *(line for line in mounts if str(board.folder) in line)]


def test_what_is_missing_for_a_board_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root or without a program there is no board, and the reason is named."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    if board_obstacle.__wrapped__() != "namespaces with a network of their own need root":
        assert "'make test-needs' installs it" in (board_obstacle.__wrapped__() or "")
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    for obstacle in (board_obstacle, loopback_obstacle):
        assert obstacle.__wrapped__() == "there is no ssh; 'make test-needs' installs it"


def test_nothing_of_a_board_is_left(requires_board: None) -> None:
    """After its stop there is no interface, no mount, no process and no folder of it."""
    board = NamespaceBoard()
    opened(board).run(["true"])
    inside = board.processes()
    assert len(traces_of(board, inside)) == len(inside) + 2
    board.stop()
    board.stop()
    awaited(lambda: not traces_of(board, inside))  # the kernel takes its time with interfaces


def test_nothing_of_a_board_is_left_after_a_kill(requires_board: None) -> None:
    """Where the tests are killed, its interface and processes go with them, its folder when the next board is made."""
    code = (
        "import os, signal, tests.board_namespaces as boards\nboard = boards.NamespaceBoard()\n"
        "print(board.folder, board.interface, *board.processes(), flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    folder, interface, *inside = told.stdout.split()
    assert inside
    places = [Path(f"/sys/class/net/{interface}"), *(Path(f"/proc/{pid}/ns/pid") for pid in inside)]
    awaited(lambda: not any(map(os.path.lexists, places)))
    sweep(str(Path(folder).parent))  # as the next tests do
    assert not Path(folder).exists()


def test_a_reboot_ends_processes_and_keeps_the_home(fresh_board: NamespaceBoard) -> None:
    """After a reboot the boot id is new, /tmp is empty, no process is left, and what was in the home still is."""
    before = fresh_board.boot_id
    fresh_board.run("sh", "-c", "echo kept >kept; echo lost >/tmp/lost; (setsid sleep 1234 >/dev/null 2>&1 &)")
    awaited(lambda: fresh_board.processes("^sleep 1234"))
    fresh_board.reboot(cut=True)
    told = opened(fresh_board).run(["sh", "-c", "cat kept /proc/sys/kernel/random/boot_id; ls -A /tmp"])
    kept, boot_id, *left = told.text.split("\n")
    assert (kept, boot_id) == ("kept", fresh_board.boot_id)
    assert "lost" not in left  # the checkout may lie there
    assert fresh_board.boot_id != before
    assert not fresh_board.processes("sleep 1234")


def test_a_wrong_clock_is_wrong_in_running_processes(start_board: Callable[..., NamespaceBoard]) -> None:
    """A step of the clock reaches a process that runs already; its monotonic clock goes on."""
    if clock_library() is None:
        pytest.skip("boards: libfaketime is not installed; 'make test-needs' installs it")
    board = start_board(clock=True)
    board.link_suite()
    code = "import sys, time\nfor line in sys.stdin: print(time.time(), time.monotonic(), flush=True)"
    process = opened(board).start(["~/.local/share/perfsuite/venv/bin/python", "-c", code])
    assert process.stdin is not None
    assert process.stdout is not None
    seen = []
    for offset_s in (0, 86400):
        board.set_clock(offset_s)
        process.stdin.write(b"\n")
        process.stdin.flush()
        seen.append([float(each) for each in process.stdout.readline().split()])
    process.communicate()
    assert abs(seen[0][0] - time.time()) < 60
    assert seen[1][0] - seen[0][0] > 86000
    assert seen[1][1] - seen[0][1] < 60


def test_processes_are_killed_by_what_they_are_called(fresh_board: NamespaceBoard) -> None:
    own = subprocess.Popen(["sleep", "4321"])
    fresh_board.run("sh", "-c", "(setsid sleep 4321 >/dev/null 2>&1 &)")
    awaited(lambda: fresh_board.processes("sleep 4321"))
    assert fresh_board.kill("sleep 4321") == 1
    assert own.poll() is None
    own.kill()
    own.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="a /run of its own needs root")
def test_the_lock_of_a_loopback_board_is_its_own(requires_loopback_board: None) -> None:
    """Two of them, of two runs of the tests, can each be taken; neither is this machine's."""
    program = (
        "import sys; from perfsuite.device.lock import hold_lock; from perfsuite.device.lock_owner import LockOwner\n"
        "owner = LockOwner.here(user='ann', host='desk', run_id=sys.argv[1], purpose='a test')\n"
        "with hold_lock(owner): print('held', flush=True); sys.stdin.read()"
    )
    with ExitStack() as ends:
        for run_id in ("one", "two"):
            ends.callback((board := LoopbackBoard()).stop)
            ends.callback((target := opened(board)).close)
            process = target.start(["env", f"PYTHONPATH={ROOT}", sys.executable, "-c", program, run_id])
            assert process.stdin is not None
            ends.enter_context(process)
            ends.callback(process.stdin.close)
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
