"""Whatever the agent hears last, it ends; and the end comes to the main thread, whatever it is at."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from perfsuite.measure.board.frames import Frames, StuckError, read_chunk
from perfsuite.measure.board.listening import Speaker


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
