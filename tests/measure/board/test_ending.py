"""The end comes to the main thread, whatever it is at."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
