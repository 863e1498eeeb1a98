"""A board at the end of a link is measured as this machine is, and every way in which that fails is one clear line."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import pytest

from perfsuite.device.machine import Conditions
from perfsuite.device.setup.bundle_scripts import OLD_SETUP
from perfsuite.device.stability.sampler import Sample
from perfsuite.errors import DeviceError, LinkError, MeasurementError
from perfsuite.measure.board.frames import packed_frame
from perfsuite.measure.board.hello import PREAMBLE, own_versions
from perfsuite.measure.board.holding import Held
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.remote_board import RemoteBoard
from perfsuite.measure.plan import LlamaPlan, TurnsPlan
from perfsuite.records.whole_file import file_digest
from perfsuite.workload.weights import materialize, resolve
from tests.device_lock import LOCK_NAME, lock_holder

from ..conftest import is_gone
from .conftest import ANY, QUICK, BoardHome

#: A worker that names itself and never ends, without a child that would outlive it.
HANGS = 'echo $$ > "$(dirname "$0")/worker.pid"; mkfifo "$0.wait" 2>&-; read -r line <"$0.wait"'

SMALL_MODEL = "smollm2-135m-l2-q8_0"


def test_a_board_describes_itself_as_it_would_here(board: RemoteBoard, home: BoardHome) -> None:
    """What comes over the link is what the same machine says of itself, except what changes by itself."""
    here = LocalBoard(cache_dir=home.folder / "cache" / "perfsuite").facts()
    here = replace(here, opencl_environment={})  # the board's own loader and vendors
    board.open()
    told = board.facts()
    machine_id = Path("/etc/machine-id")
    if not (machine_id.is_file() and machine_id.read_text().strip()):
        here = replace(here, identity=told.identity)  # each keeps a number of its own where the machine has none
    assert replace(told, load_average=0.0) == replace(here, load_average=0.0)
    assert not board.is_local
    assert {"load_average", "cpu_mhz", "temperature_celsius", "power_watts"} <= set(board.covariates())
    assert 0.0 <= (board.competition().others_ratio or 0.0) <= 1.0


def test_two_processes_take_turns_there(
    board: RemoteBoard, home: BoardHome, small_plan: LlamaPlan, engine_cache: Path
) -> None:
    """The records of a pair come back in the order of its plans, each with the samples of the device beside it."""
    home.bring_libraries(engine_cache)
    plans = (TurnsPlan(llama=small_plan), TurnsPlan(llama=replace(small_plan, n_gen=2)))
    first, second = board.run_in_turns(plans, n_turns=2, leader=1)
    assert len(first["engine"]["spans"]) > len(second["engine"]["spans"])
    assert first["contention"]["wall_ns"] > 0
    samples = first["device_samples"]
    assert samples == second["device_samples"]
    assert set(samples[0]) == {each.name for each in fields(Sample)}
    assert [each["at_ns"] for each in samples] == sorted(each["at_ns"] for each in samples)
    assert len(samples) >= 2


def test_an_error_there_is_the_same_error_here(board: RemoteBoard, home: BoardHome) -> None:
    home.install("echo last words; kill -KILL $$")
    with pytest.raises(
        MeasurementError,
        match=r"^the worker for '(opencl_)?devices' was killed by SIGKILL: last words; if memory ran out",
    ):
        board.run(ANY)
    with pytest.raises(Exception, match=r"/nowhere: is not a folder") as caught:
        board.find_engine(Path("/nowhere"))
    assert type(caught.value).__name__ == "EngineError"
    assert board.find_engine(None) == board.facts().engine


def test_what_a_plan_sets_reaches_the_worker_unchanged(board: RemoteBoard, home: BoardHome) -> None:
    """Variables of a plan may hold anything but NUL, and are set on the board alone."""
    home.install('printf %s "$ODD" > $(dirname "$0")/odd; exit 1')
    odd = "a 'b' \"c\" $(id) `id`\n\\ é \t*"
    with pytest.raises(MeasurementError, match="wrote no record"):
        board.run(ANY, extra_environment={"ODD": odd})
    assert (home.folder / "odd").read_text() == odd


@pytest.mark.long_but_first
def test_a_file_is_put_once_and_checked(board: RemoteBoard, home: BoardHome, tmp_path: Path) -> None:
    synthetic = materialize(resolve(SMALL_MODEL, cache_dir=tmp_path), cache_dir=tmp_path)
    weights = resolve(str(synthetic), cache_dir=tmp_path)
    there = board.place_weights(weights)
    assert there.name == f"{file_digest(synthetic)}.gguf"
    assert file_digest(there) == there.stem
    put_ns = there.stat().st_mtime_ns
    board.close()
    with closing(home.board()) as again:
        again.place_weights(weights)
    assert there.stat().st_mtime_ns == put_ns
    with there.open("r+b") as file:
        file.write(b"GGUX")
    with closing(home.board()) as third:
        third.place_weights(weights)
    assert file_digest(there) == there.stem


def test_a_lock_that_is_removed_is_a_problem(board: RemoteBoard, home: BoardHome) -> None:
    """Somebody else may have had the board since."""
    board.open()
    (home.locks / LOCK_NAME).unlink()
    assert "the device's lock was lost" in board.held().problems[0]


def test_the_conditions_reach_the_board(home: BoardHome) -> None:
    usable = sorted(os.sched_getaffinity(0))
    board = home.board(hello=home.hello(conditions=Conditions(processors=(usable[0],))))
    board.open()
    assert board.facts().usable_threads == 1
    board.close()
    with pytest.raises(DeviceError, match="processors 4096 are not there"):
        home.board(hello=home.hello(conditions=Conditions(processors=(4096,)))).open()


def test_a_board_without_the_suite_says_what_to_do(home: BoardHome) -> None:
    remedy = r" \(local, .*\); run 'perfsuite devices setup board'$"
    home.wrapper.unlink()
    with pytest.raises(DeviceError, match=f"^board: perfsuite is not installed there{remedy}"):
        home.board().open()
    (home.folder / "venv").mkdir()
    with pytest.raises(DeviceError, match=f"^board: {OLD_SETUP}{remedy}"):
        home.board().open()


def test_another_version_there_is_refused(home: BoardHome) -> None:
    hello = replace(home.hello(), suite_version="9.9")
    with pytest.raises(DeviceError, match=r"there, perfsuite .*; run 'perfsuite devices setup board'$"):
        home.board(hello=hello).open()


def test_what_a_login_prints_first_is_passed_over(board: RemoteBoard, home: BoardHome) -> None:
    home.install(before="echo Welcome; printf '\\000\\377'")
    board.open()
    assert board.facts().hostname


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("head -c 200000 /dev/zero; exec sleep 30", "no perfsuite answers there: .* bytes came that are none of its"),
        (
            r"printf '\nperfsuite-agent\n\377\377\377\377'; exec sleep 30",
            "message of 4294967295 bytes was announced .*garbage",
        ),
    ],
)
def test_garbage_on_the_link_is_told(home: BoardHome, script: str, message: str) -> None:
    home.script(script)
    board = home.board(replace(QUICK, reconnect_s=0.0))
    with pytest.raises(LinkError, match=message):
        board.open()
    board.close()


def test_a_program_that_is_silent_is_given_up(home: BoardHome) -> None:
    board = home.board(replace(QUICK, silence_s=5.0, reconnect_s=0.0))
    board.open()
    home.end(signal.SIGSTOP)
    home.script("exit 1")
    with pytest.raises(LinkError, match="the link was lost: it has said nothing for 5 s"):
        board.covariates()
    assert is_gone(home.pid)
    board.close()


def test_another_board_in_its_place_is_refused(board: RemoteBoard, home: BoardHome) -> None:
    """A link that comes back to another machine does not go on with its figures."""
    board.open()
    board._facts = replace(board.facts(), identity="0" * 16)
    home.end()
    for _ in range(2):
        with pytest.raises(LinkError, match="another board answers than before"):
            board.covariates()
        assert board.held() == Held()  # nobody asks the other one for it
    board.close()
    assert is_gone(home.pid)
    assert lock_holder(home.locks) is None


def test_the_predecessor_on_a_lost_link_is_ended(home: BoardHome) -> None:
    """A program that has not noticed the end of its link does not measure beside the next one of the same run."""
    home.install(HANGS)
    first, second = home.board(), home.board()
    first.open()
    pid = home.pid
    second.open()
    assert is_gone(pid)
    assert home.pid != pid
    second.close()
    first.close()


def test_an_interrupt_at_the_desk_ends_the_worker_there(board: RemoteBoard, home: BoardHome) -> None:
    home.install(HANGS)
    board.open()

    def interrupt() -> None:
        assert home.worker_pid
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        board.run(ANY)
    thread.join()
    worker, program = home.worker_pid, home.pid
    assert not is_gone(worker)
    board.close()
    assert is_gone(worker)
    assert is_gone(program)
    assert lock_holder(home.locks) is None


def test_closing_leaves_nothing_open(board: RemoteBoard, home: BoardHome) -> None:
    n_threads, n_descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    board.open()
    pid = home.pid
    board.close()
    board.close()
    assert is_gone(pid)
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (n_threads, n_descriptors)


def plays(home: BoardHome, *messages: dict[str, object], then: str = "exec sleep 30", repeat: int = 1) -> None:
    """Put a program there that says these messages whatever it is asked, and reads nothing."""
    content = home.folder / "messages"
    content.write_bytes(PREAMBLE + b"".join(map(packed_frame, messages)) * repeat)
    home.script(f'cat "{content}"; {then}')


AT_ONCE = replace(QUICK, reconnect_s=0.0)


def test_a_program_that_does_not_read_is_given_up(home: BoardHome) -> None:
    """A message longer than the pipe does not wait beyond the limit of its answer, though there are signs of life."""
    pong = home.folder / "pong"
    pong.write_bytes(packed_frame({"kind": "pong"}))
    plays(home, then=f'for i in 1 2 3 4 5 6 7 8 9; do cat "{pong}"; sleep 1; done')
    hello = home.hello(conditions=replace(home.hello().conditions, cooling_limit_s=0.0))
    long = replace(hello, claim=replace(hello.claim, purpose="p" * 300_000))
    board = home.board(replace(AT_ONCE, answer_s=1.0), long)
    since = time.monotonic()
    with pytest.raises(LinkError, match="it did not answer 'hello' within 1 s"):
        board.open()
    assert time.monotonic() - since < 15.0
    board.close()


def test_a_flood_of_messages_is_given_up(home: BoardHome) -> None:
    """Notes without end, and answers that nobody asked for, neither fill the memory nor the terminal."""
    for message in ({"kind": "note", "text": "x" * 9999}, {"kind": "answer", "id": 7}):
        plays(home, message, repeat=5000)
        with pytest.raises(LinkError, match="it said 1000 things"):
            home.board(AT_ONCE).open()
    assert len(home.told) <= 1000
    assert max(map(len, home.told)) == 500


@pytest.mark.parametrize(
    ("versions", "told"), [(own_versions(), "calls itself the same"), (3, "perfsuite None .* there,")]
)
def test_a_refusal_names_both_versions(home: BoardHome, versions: object, told: str) -> None:
    plays(home, {"kind": "refused", "versions": versions})
    with pytest.raises(DeviceError, match=rf"^board: .*{told}.*; run 'perfsuite devices setup board'$"):
        home.board(AT_ONCE).open()


def test_what_the_first_program_said_outlives_its_link(board: RemoteBoard, home: BoardHome) -> None:
    """A problem that was known before the link was lost still spoils what was measured."""
    board.open()
    board._held[0] = Held(notes=("policy0: is 'powersave'",), problems=("too hot",))
    home.end()
    board.covariates()
    seen = board.held()
    assert seen.problems == ("too hot",)
    assert "policy0: is 'powersave'" in seen.notes
    assert any("came back" in note for note in seen.notes)
    board.close()
    assert board.held().problems == ("too hot",)


def test_an_interrupt_within_a_message_still_ends_the_program(board: RemoteBoard, home: BoardHome) -> None:
    """After Ctrl-C in the middle of a request the end of its input is the program's goodbye, and it restores."""
    board.open()
    os.kill(home.pid, signal.SIGSTOP)
    timer = threading.Timer(0.5, lambda: (os.kill(os.getpid(), signal.SIGINT), os.kill(home.pid, signal.SIGCONT)))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        board.run(ANY, extra_environment={"LONG": "x" * 300_000})
    timer.join()
    since = time.monotonic()
    board.close()
    assert time.monotonic() - since < 5.0
    assert lock_holder(home.locks) is None
