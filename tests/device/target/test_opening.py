"""Every way of a profile opens, and no other."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import suppress

import psutil
import pytest

from perfsuite.device.reach import WAYS, Reach
from perfsuite.device.target.opening import open_target
from perfsuite.errors import DeviceError, LinkError

TOKEN = "the-shell-to-kill"


def test_a_shell_that_is_killed_is_told() -> None:
    """Where the shell itself is ended from outside, that is the failure, with its last words."""
    target = open_target(Reach())
    killer = threading.Thread(target=kill_the_shell)
    killer.start()
    with pytest.raises(LinkError, match=r"local: the shell was ended from outside \(word\); run it again"):
        target.run(["sh", "-c", "echo word >&2; exec sleep 4", TOKEN])
    killer.join()


_RUNS = """
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target
target = open_target(Reach())
print([target.run(["cat"], stdin=given).text for given in (b"", b"word")], flush=True)
print(target.start(["cat"]).communicate(b"more")[0], flush=True)
"""


def test_nothing_there_reads_what_this_process_could() -> None:
    """A command ends though this process's own input is a pipe that stays open, and says nothing."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _RUNS], stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.wait(30) == 0
            assert process.stdout is not None
            assert process.stdout.read() == "['', 'word']\nb'more'\n"
        finally:
            process.kill()


def kill_the_shell() -> None:
    """End the shell once it is there and has said its word, and no other process of these tests."""
    until_s = time.monotonic() + 10.0
    while time.monotonic() < until_s:
        time.sleep(0.5)
        for child in psutil.Process().children():
            with suppress(psutil.Error):  # others end at the same time
                if TOKEN in " ".join(child.cmdline()):
                    child.kill()
                    return


@pytest.mark.parametrize("way", WAYS)
def test_every_way_opens_without_asking_the_device(way: str) -> None:
    """Opening runs nothing, so a device that is away is opened, too; its words name the way and the address."""
    target = open_target(Reach(way=way, address="nowhere.invalid"))
    assert target.text.startswith(way)
    target.close()


def test_another_way_is_refused() -> None:
    """A way that there is not is told with those that there are."""
    with pytest.raises(DeviceError, match=r"'telnet': no way to a device; .* local, ssh, adb"):
        open_target(Reach(way="telnet"))
