"""Gathering facts over a link: what is asked, and what comes of a device that does not answer."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from perfsuite.device.doctor.gathering import gather, python_words
from perfsuite.device.profile import find_profile
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target

from .device_facts import INSTALLED


def test_this_machine_tells_all() -> None:
    """The host has a suite, a clock that is right, and two looks at its processors."""
    host = find_profile("host", folders=())
    words = python_words(host, Path(sys.executable))
    found = gather(open_target(Reach()), host, words, here=INSTALLED, model_bytes=None)
    assert found.link_problem is None
    assert found.suite is not None, found.suite_problem
    assert found.suite.cache_free_bytes > 0
    assert found.clock_difference_s == 0.0
    assert found.readings.text("cpu_ticks2") is not None


def test_a_device_without_the_suite_is_told_with_the_program_that_is_missing() -> None:
    """A shell that answers is not a suite that does."""
    host = find_profile("host", folders=())
    found = gather(open_target(Reach()), host, ("/no/such/python",), here=INSTALLED, model_bytes=None)
    assert (found.suite, found.suite_problem) == (None, "is not there (no /no/such/python)")


def test_another_answer_is_told_in_its_own_words() -> None:
    """A broken installation fails in its last words."""
    host = find_profile("host", folders=())
    words = ("sh", "-c", "echo ImportError: no numpy >&2; exit 1")
    found = gather(open_target(Reach()), host, words, here=INSTALLED, model_bytes=None)
    assert found.suite_problem == "does not run: ImportError: no numpy"


def test_a_device_out_of_reach_is_a_fact() -> None:
    """Nobody listens on the port: the facts say so, and hold nothing else."""
    bench = replace(find_profile("host", folders=()), reach=Reach(way="ssh", address="127.0.0.1", port=9))
    words = python_words(bench, Path(sys.executable))
    assert words == ("~/.local/share/perfsuite/venv/bin/python",)
    found = gather(open_target(bench.reach), bench, words, here=INSTALLED, model_bytes=None)
    assert found.link_problem is not None
    assert "refused" in found.link_problem
    assert found.suite is None
