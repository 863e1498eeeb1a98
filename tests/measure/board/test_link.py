"""However the program ends, its worker is dead, and the board is as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping

import pytest

from perfsuite.measure.board.frames import Frames, packed_frame
from perfsuite.measure.board.hello import PREAMBLE, own_versions
from perfsuite.measure.plan import dump_plan
from tests.device_lock import lock_holder

from ..conftest import is_gone, wait_until
from .conftest import ANY, FOREVER_S, BoardHome


class Desk:
    def __init__(self, home: BoardHome, hello: Mapping[str, object]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [str(home.wrapper), "serve"], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        self.say({"kind": "hello", "id": 1, "arguments": dict(hello)})

    def say(self, message: dict[str, object]) -> None:
        self.send(packed_frame(message))

    def send(self, content: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(content)
        self.process.stdin.flush()

    def heard(self) -> tuple[list[dict[str, object]], str]:
        """Wait until the program has ended; return all its messages, and its errors."""
        output, errors = self.process.communicate(timeout=30)
        _, _, content = output.partition(PREAMBLE)
        return list(Frames().messages(content)), errors.decode()


@pytest.fixture
def busy(home: BoardHome) -> Desk:
    home.install(f'echo $$ > "$(dirname "$0")/worker.pid"; sleep {FOREVER_S} & wait')
    desk = Desk(home, home.hello().to_plain())
    asked = {
        "plan": dump_plan(ANY),
        "environment": {},
        "command": [],
        "options": [],
        "limit_s": FOREVER_S,
        "looks": None,
    }
    desk.say({"kind": "run", "id": 2, "arguments": asked})
    assert home.worker_pid
    return desk


def is_restored(home: BoardHome) -> bool:
    return is_gone(home.worker_pid) and lock_holder(home.locks) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_all(busy: Desk, home: BoardHome, number: int) -> None:
    os.kill(home.pid, number)
    messages, _ = busy.heard()
    assert is_restored(home)
    assert messages[-1]["kind"] == "ended"


def test_the_end_of_the_input_ends_all(busy: Desk, home: BoardHome) -> None:
    messages, errors = busy.heard()
    assert is_restored(home)
    assert "perfsuite: the link ended" in errors
    assert [each["kind"] for each in messages] == ["answer", "ended"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\xff\xff\xff\xff", "a message of 4294967295 bytes was announced"),
        (b"\0\0\0\2\xc0\xc0", "a message cannot be read"),
        (packed_frame({"kind": "run"}), "a message 'run' has no arguments"),
        (b"\0\0\0\7half", "the link ended in the middle of a message"),
    ],
)
def test_garbage_ends_all(busy: Desk, home: BoardHome, content: bytes, complaint: str) -> None:
    busy.send(content)
    _, errors = busy.heard()
    assert is_restored(home)
    assert complaint in errors
    assert busy.process.returncode == 1


def test_a_silent_desk_ends_all(home: BoardHome) -> None:
    desk = Desk(home, {**home.hello().to_plain(), "silence_limit_s": 1.0})
    desk.say({"kind": "ping"})
    assert desk.process.wait(20) == 1
    messages, errors = desk.heard()
    assert "the desk has said nothing for 1 s" in errors
    assert {"kind": "pong"} in messages
    assert lock_holder(home.locks) is None


@pytest.mark.parametrize("is_another_version", [True, False])
def test_another_suite_is_refused_whatever_it_says(home: BoardHome, is_another_version: bool) -> None:
    """A hello that cannot be read is answered with the versions here; nothing is locked, and there is no traceback."""
    hello = {"what": 1} if is_another_version else {**home.hello().to_plain(), "another": 1}
    desk = Desk(home, hello)
    assert desk.process.wait(20) == 0
    messages, errors = desk.heard()
    assert [each["kind"] for each in messages] == ["refused", "ended"]
    assert messages[0]["versions"] == own_versions()
    assert errors == ""
    assert lock_holder(home.locks) is None


def test_a_desk_that_reads_no_more_ends_all(home: BoardHome) -> None:
    """With an answer in the pipe that nobody takes the program still ends, and writes nothing behind its half."""
    desk = Desk(home, {**home.hello().to_plain(), "silence_limit_s": 1.0})
    desk.say({"kind": "x" * 300_000, "id": 2, "arguments": {}})
    assert wait_until(lambda: is_gone(home.pid))
    assert lock_holder(home.locks) is None
    messages, errors = desk.heard()
    assert [each["kind"] for each in messages] == ["answer"]
    assert "the desk has said nothing for 1 s" in errors


def test_a_desk_that_is_gone_before_its_hello_is_answered_leaves_no_lock(home: BoardHome) -> None:
    """The board that was just taken is given back, though nobody hears that it is there."""
    desk = Desk(home, home.hello().to_plain())
    assert desk.process.stdout is not None
    desk.process.stdout.close()
    with desk.process:
        assert desk.process.stderr is not None
        assert b"Traceback" not in desk.process.stderr.read()
    assert lock_holder(home.locks) is None


def test_a_signal_while_a_message_is_written_does_not_cut_it(home: BoardHome) -> None:
    desk = Desk(home, home.hello().to_plain())
    desk.say({"kind": "x" * 300_000, "id": 2, "arguments": {}})
    time.sleep(2.0)  # the pipe is full by then
    os.kill(home.pid, signal.SIGTERM)
    time.sleep(0.3)
    messages, _ = desk.heard()
    assert [each["kind"] for each in messages] == ["answer", "error", "ended"]
