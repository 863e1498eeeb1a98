"""Whatever the agent hears last, it ends; and the end comes to the main thread, whatever it is at."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from perfsuite.measure.board import ending as endings
from perfsuite.measure.board.ending import Ending
from perfsuite.measure.board.frames import Frames, StuckError, packed_frame, read_chunk
from perfsuite.measure.board.listening import Listener, Speaker


def test_messages_and_signs_of_life_arrive() -> None:
    reading, writing = os.pipe()
    speaker = Speaker(writing, lambda: False)
    speaker.say({"kind": "note"})
    speaker.pong()
    assert [each["kind"] for each in Frames().messages(read_chunk(reading))] == ["note", "pong"]
    os.close(reading)
    os.close(writing)
    assert not speaker.is_busy
    assert not speaker.is_cut


def test_nothing_follows_a_message_that_was_cut() -> None:
    """Once a part of a message was not taken, no sign of life is written behind it, and it is known."""
    reading, writing = os.pipe()
    over = threading.Event()
    over.set()
    speaker = Speaker(writing, over.is_set)
    with pytest.raises(StuckError):
        speaker.say({"kind": "x" * 200_000})
    assert speaker.is_cut
    assert not speaker.is_busy
    taken = read_chunk(reading)
    speaker.pong()
    os.close(writing)
    while chunk := read_chunk(reading):
        taken += chunk
    os.close(reading)
    assert list(Frames().messages(taken)) == []
    assert b"pong" not in taken


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Return what a listener reads from, and what the desk writes to; no thread of the tests is ended."""
    monkeypatch.setattr(endings, "_signal_main_thread", lambda: None)
    reading, writing = os.pipe()
    yield reading, writing
    for each in (reading, writing):
        os.close(each)


def listener(reading: int, ending: Ending) -> Listener:
    return Listener(reading, Speaker(-1, lambda: False), ending)


def test_requests_are_taken_until_the_goodbye(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    ending = Ending()
    hears = listener(reading, ending)
    for number, kind in enumerate(("hello", "run")):
        os.write(writing, packed_frame({"kind": kind, "id": number, "arguments": {}}))
    os.write(writing, packed_frame({"kind": "bye"}))
    hears.listen()
    assert [hears.requests.get()["kind"] for _ in range(2)] == ["hello", "run"]
    assert (ending.is_over.is_set(), ending.reason) == (True, "")


def test_what_nobody_foresaw_ends_the_agent(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the thread that listens nobody would notice that the desk is gone."""
    reading, writing = pipe
    monkeypatch.setattr(Listener, "_take", lambda *_: 1 // 0)
    ending = Ending()
    os.write(writing, packed_frame({"kind": "ping"}))
    listener(reading, ending).listen()
    assert ending.is_over.is_set()
    assert ending.reason == "what the desk said cannot be taken (ZeroDivisionError: integer division or modulo by zero)"


#: Ends itself while its main thread waits, which may be held off.
_PROGRAM = """
import threading, time
from perfsuite.measure.board.ending import EndedError, Ending
ending, busy = Ending(), {busy}
ending.hear_signals(lambda: busy)
threading.Timer(0.2, lambda: (ending.come("first"), ending.come("second"))).start()
try:
    time.sleep({sleep_s})
    print("slept")
except EndedError:
    print("ended")
print(ending.is_over.is_set(), ending.reason)
"""


#: A signal comes while the main thread says that it is at the end, and one within the handler of another.
_CLOSE = """
import signal
from perfsuite.measure.board.ending import EndedError, Ending
def signalled(do):
    left = [signal.SIGHUP]
    def done():
        if left:
            signal.raise_signal(left.pop())
        do()
    return done
ending = Ending()
ending.hear_signals(lambda: False)
ending.is_over.set = signalled(ending.is_over.set)
try:
    signal.raise_signal(signal.SIGTERM)
except EndedError:
    print("ended")
ending._is_letting_go.set = signalled(ending._is_letting_go.set)
ending.let_go()
signal.raise_signal(signal.SIGINT)
print(ending._is_letting_go.is_set())
"""


def test_nothing_breaks_into_the_end() -> None:
    """Signals may follow each other closely; from when the main thread is at the end they are only noted."""
    done = subprocess.run([sys.executable, "-c", _CLOSE], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["ended", "True"]), done.stderr


@pytest.mark.parametrize(("busy", "sleep_s", "told"), [(False, 60.0, "ended"), (True, 1.0, "slept")])
def test_the_main_thread_is_ended_unless_it_is_held_off(busy: bool, sleep_s: float, told: str) -> None:
    """Another thread ends it wherever it waits; a busy one goes on, and knows afterwards; the reason comes once."""
    program = _PROGRAM.format(busy=busy, sleep_s=sleep_s)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.splitlines() == [told, "True first"]
