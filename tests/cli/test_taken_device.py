"""Commands that measure have the device while they do so, and let go of it however they end."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfsuite.cli import main
from perfsuite.cli.taken_device import taken_device
from perfsuite.device.end_requests import END_REQUESTS
from perfsuite.device.machine import default_threads
from perfsuite.device.profile import Profile, find_profile
from perfsuite.errors import DeviceError, LinkError, LockedError
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.environment import RUN_ID_NAME
from tests.command_streams import Refused, Streams
from tests.device_lock import LOCK_NAME, hold_lock, lock_holder

from ..sys_trees import put

#: Measures until it is ended, on a device whose governor is in a tree.
ENDLESS = """
import sys, time
from functools import partial
from pathlib import Path
from perfsuite.cli import main
from perfsuite.device.end_requests import signals_held_off
with signals_held_off():  # as the command itself imports it
    from perfsuite.experiments.overhead import command as overhead
    from perfsuite.measure.board import local_board
def measure(*_):
    print("measuring", flush=True)
    time.sleep(60)
overhead.overhead_rows = measure
local_board.LocalBoard = partial(local_board.LocalBoard, root=Path(sys.argv[1]))
sys.exit(main(["overhead", "--device=mine"]))
"""

#: Tells of every thread but the main one, once the device is had, which signals it takes not.
THREADS = """
import sys
from pathlib import Path
from perfsuite.cli import main
from perfsuite.cli.taken_device import TakenDevice
assert "numpy" not in sys.modules
def tell(_):
    assert "numpy" in sys.modules
    threads = sorted(Path("/proc/self/task").iterdir(), key=lambda each: int(each.name))[1:]
    for each in threads:
        print(next(line for line in (each / "status").read_text().splitlines() if line.startswith("SigBlk")))
    sys.exit()
TakenDevice.refuse_untrusted = tell
main(["fidelity", "--device=host"])
"""

GOVERNOR = "sys/devices/system/cpu/cpufreq/policy0/scaling_governor"

QUIET = argparse.Namespace(quiet=False)


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this test a lock, a cache and a folder of its own."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setenv("PERFSUITE_LOCK_DIR", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def mine(tmp_path: Path) -> Callable[[str], Profile]:
    """Write the profile ``mine`` of this machine with conditions, and return it."""

    def write(conditions: str) -> Profile:
        put(tmp_path, "devices/mine.toml", f'description = "a test"\nextends = "host"\n[conditions]\n{conditions}')
        return find_profile("mine")

    return write


def test_the_device_is_had_while_it_is_measured(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock says which command it is, and nobody has the device afterwards."""
    seen: list[str] = []

    def measured(*_: object) -> list[object]:
        owner = lock_holder(locks)
        assert owner is not None
        seen.append(owner.purpose)
        return []

    monkeypatch.setattr("perfsuite.experiments.overhead.command.overhead_rows", measured)
    assert main(["overhead", "--recorder=preload", "--json"]) == 0
    assert seen == ["perfsuite overhead --device=host"]
    assert lock_holder(locks) is None


def test_a_failure_gives_the_device_back(locks: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    """A command that could not measure leaves no lock."""

    def failed(*_: object) -> None:
        raise DeviceError("no more")

    monkeypatch.setattr("perfsuite.experiments.overhead.command.overhead_rows", failed)
    assert refused(["overhead"]) == "perfsuite: error: no more\n"
    assert lock_holder(locks) is None


def test_it_has_the_processors_of_its_profile(mine: Callable[[str], Profile], monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is measured only those are used, of which the number of threads follows, and all others afterwards."""
    before, first = os.sched_getaffinity(0), min(os.sched_getaffinity(0))
    mine(f"processors = [{first}]")
    seen: list[tuple[set[int], int]] = []
    monkeypatch.setattr(
        "perfsuite.experiments.overhead.command.overhead_rows",
        lambda *_: seen.append((os.sched_getaffinity(0), default_threads())),
    )
    with pytest.raises(TypeError):  # nothing was measured, so that there is nothing to tell
        main(["overhead", "--device=mine", "--recorder=preload"])
    assert seen == [({first}, 1)]
    assert os.sched_getaffinity(0) == before


def test_what_is_to_be_known_of_the_device_is_told(
    mine: Callable[[str], Profile], monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """A governor that cannot be set is a remark of the command's, once, and none with ``--quiet``."""
    monkeypatch.setattr("perfsuite.device.stability.governing.processor_governors", lambda root: ())
    profile = mine('governor = "performance"')
    with taken_device(profile, "sweep", QUIET):
        pass
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sweep: governor 'performance' cannot be set: no control of the processors' frequency here")
    with taken_device(profile, "sweep", argparse.Namespace(quiet=True)):
        pass
    assert capsys.readouterr().err == ""


def test_a_device_that_does_not_cool_is_not_measured(
    mine: Callable[[str], Profile], monkeypatch: pytest.MonkeyPatch, locks: Path, capsys: Streams
) -> None:
    """Where the temperature gate was waited for without effect, nothing is measured and the reason is reported once."""
    cooled = SimpleNamespace(notes=(), problem="zone cpu is at 90 °C")
    monkeypatch.setattr("perfsuite.measure.board.program.wait_until_cool", lambda *_, **__: cooled)
    hot = mine("start_below_celsius = 50.0")
    with pytest.raises(DeviceError, match="90 °C"), taken_device(hot, "sweep", QUIET):
        pytest.fail("was measured")
    assert capsys.readouterr().err == ""
    assert lock_holder(locks) is None


def test_a_lock_that_was_removed_is_a_failure(locks: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams) -> None:
    """The answer is there, after the line that says what is wrong with it, with ``--quiet`` too; nothing is kept."""

    def measured(options: argparse.Namespace) -> int:
        with taken_device(find_profile("host"), "overhead", options) as taken:
            taken.refuse_untrusted()
            (locks / LOCK_NAME).unlink()
        with pytest.raises(DeviceError, match="lock was lost"):
            taken.refuse_untrusted()
        print("the answer")
        return 0

    monkeypatch.setattr("perfsuite.experiments.overhead.command._overhead", measured)
    assert main(["overhead", "--quiet"]) == 2
    out, err = capsys.readouterr()
    assert out == "the answer\n"
    assert err.startswith("overhead: do not trust what was measured: the device's lock was lost")


@pytest.mark.parametrize(("asked", "ended"), [(0, 2), (1, 1)])
def test_a_device_that_is_not_restored_is_a_failure(
    asked: int, ended: int, locks: Path, monkeypatch: pytest.MonkeyPatch, capsys: Streams
) -> None:
    """The answer is there, after the line that says so, and the exit code is 2 where the command's own was 0."""
    close = LocalBoard.close

    def failing(board: LocalBoard) -> None:
        close(board)
        raise LinkError("board: the link was lost")

    def measured(options: argparse.Namespace) -> int:
        with taken_device(find_profile("host"), "overhead", options):
            pass
        print("the answer")
        return asked

    monkeypatch.setattr(LocalBoard, "close", failing)
    monkeypatch.setattr("perfsuite.experiments.overhead.command._overhead", measured)
    assert main(["overhead"]) == ended
    assert capsys.readouterr() == ("the answer\n", "overhead: error: board: the link was lost\n")
    monkeypatch.undo()
    assert main(["devices", "list"]) == 0, "what a command before came to is its own"


def test_a_command_within_another_shares_its_device(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that a command starts finds the device taken for it; anybody else is refused."""
    with taken_device(find_profile("host"), "trace", QUIET) as outer:
        with pytest.raises(LockedError), taken_device(find_profile("host"), "sweep", QUIET):
            pytest.fail("was measured")
        assert outer.environment.keys() == {RUN_ID_NAME}
        for name, value in outer.environment.items():
            monkeypatch.setenv(name, value)
        with taken_device(find_profile("host"), "sweep", QUIET) as inner:
            assert inner.run_id == outer.run_id
        with pytest.raises(BlockingIOError), hold_lock(folder=locks):
            pytest.fail("the outer one has it still")
    assert lock_holder(locks) is None


def test_a_followed_program_may_measure(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program under the OpenCL layer, which takes the device itself, is not refused by the one that follows it."""
    script = (
        "import sys; from perfsuite.cli import main; from perfsuite.experiments.overhead import command; "
        "command.overhead_rows = lambda *_: []; "
    )
    program = [sys.executable, "-c", f"{script}sys.exit(main(['overhead', '--json', '--recorder=preload']))"]
    monkeypatch.setattr(
        "perfsuite.experiments.tracing.command_opencl.find_opencl_layers", lambda _: SimpleNamespace(tracing="layer.so")
    )
    assert main(["trace", "--opencl", "--", *program]) == 0
    assert lock_holder(locks) is None


def test_no_thread_but_the_main_one_takes_requests_to_end(locks: Path) -> None:
    """Such as those that NumPy starts: a wait of the main thread would go on."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", THREADS]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60).stdout
    masks = [int(line.split()[1], 16) for line in told.splitlines()]
    assert masks, "NumPy started no thread"
    assert all(mask >> (number - 1) & 1 for mask in masks for number in END_REQUESTS), told


@pytest.mark.parametrize(
    ("numbers", "statuses"),
    [
        ([signal.SIGINT], {130}),
        ([signal.SIGTERM], {143}),
        ([signal.SIGHUP], {129}),
        ([signal.SIGTERM, signal.SIGHUP, signal.SIGTERM], {143, 129}),
        ([signal.SIGINT, signal.SIGTERM, signal.SIGINT], {130, 143}),
    ],
)
def test_a_command_that_is_ended_lets_go(
    numbers: list[int], statuses: set[int], locks: Path, tmp_path: Path, mine: Callable[[str], Profile]
) -> None:
    """Ctrl-C, a service that is stopped and a terminal that is closed restore the governor and give the lock back."""
    mine('governor = "performance"')
    tree = tmp_path / "tree"
    governor = put(tree, GOVERNOR, "schedutil")
    put(tree, str(Path(GOVERNOR).parent / "scaling_available_governors"), "performance schedutil")
    put(tree, "sys/devices/system/cpu/cpu0/cpufreq", Path("../cpufreq/policy0"))
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(tree)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "measuring\n"
        assert governor.read_text() == "performance"
        assert lock_holder(locks) is not None
        for number in numbers:
            process.send_signal(number)
        _, told = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    code = process.returncode
    assert (code if code >= 0 else 128 - code) in statuses, told  # a signal at the interpreter's end is a shell's 143
    assert "Traceback" not in told
    assert lock_holder(locks) is None
    assert governor.read_text().strip() == "schedutil"
