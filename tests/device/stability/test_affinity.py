"""The processors of a run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from perfsuite.device.stability.affinity import bind_to
from perfsuite.errors import DeviceError


@pytest.fixture(autouse=True)
def usable() -> Iterator[set[int]]:
    """This process gets its processors back."""
    before = os.sched_getaffinity(0)
    yield before
    os.sched_setaffinity(0, before)


def test_children_run_where_this_process_may(usable: set[int]) -> None:
    """A worker that is started afterwards is bound too."""
    last = max(usable)
    bind_to((last,))
    command = [sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))"]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split() == [str(last)]


def test_no_processors_leaves_all(usable: set[int]) -> None:
    """A profile that names none binds nothing."""
    bind_to(())
    assert os.sched_getaffinity(0) == usable


def test_processors_that_are_not_there_are_named(usable: set[int]) -> None:
    """Nothing is bound to a part of what was asked for."""
    with pytest.raises(DeviceError, match=r"processors 4096, 4097 are not there; name some of "):
        bind_to((min(usable), 4097, 4096))
    assert os.sched_getaffinity(0) == usable
