"""What names a process for good."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from perfsuite.device.process_start import boot_id, pid_namespace, process_start


def test_this_machine_names_its_boot_and_its_namespace() -> None:
    program = "from perfsuite.device.process_start import *; print(boot_id(), pid_namespace())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [boot_id(), pid_namespace()]


def test_a_process_is_known_by_its_start() -> None:
    """Another process started at another tick, and one that has ended is not shown or marked as ended."""
    child = subprocess.Popen([sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"], stdout=-1)
    assert child.stdout is not None
    child.stdout.readline()
    started, own = process_start(child.pid), process_start(os.getpid())
    child.kill()
    assert started is not None
    assert own is not None
    assert started.ticks >= own.ticks
    while (left := process_start(child.pid)) is not None and not left.is_ended:
        time.sleep(0.01)
    child.communicate()
    assert process_start(child.pid) is None


def test_a_name_with_parentheses_does_not_mislead() -> None:
    """A process may call itself ``a) Z (b`` and is still not ended."""
    program = "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'a) Z 1 (b'); print(flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", program], stdout=-1, stdin=-1)
    assert child.stdout is not None
    child.stdout.readline()
    started = process_start(child.pid)
    child.communicate()
    assert started is not None
    assert not started.is_ended
