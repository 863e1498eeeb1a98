"""Gathering facts over a link: what is asked, and what comes of a device that does not answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.device.doctor.facts import Facts
from perfsuite.device.doctor.gathering import gather, python_words
from perfsuite.device.profile import find_profile
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target

from .device_facts import INSTALLED

HOST = find_profile("host", folders=())


def gathered(words: Sequence[str]) -> Facts:
    """The facts of this machine, whose suite is asked by these words."""
    return gather(open_target(Reach()), HOST, words, here=INSTALLED, model_bytes=None)


def test_this_machine_tells_all() -> None:
    """The host has a suite, a clock that is right, and two looks at its processors."""
    found = gathered(python_words(HOST, Path(sys.executable)))
    assert found.suite is not None, found.suite_problem
    assert found.suite.cache_free_bytes > 0
    assert (found.link_problem, found.clock_difference_s) == (None, 0.0)
    assert found.readings.text("cpu_ticks2") is not None


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["/no/such/python"], "is not there (no /no/such/python)"),
        (["sh", "-c", "echo ImportError: no numpy >&2; exit 1"], "does not run: ImportError: no numpy"),
        (["sh", "-c", """echo '{"lock": null}'"""], "it is of another version than the suite here"),
    ],
)
def test_a_device_without_this_suite_is_told(words: list[str], problem: str) -> None:
    """A shell that answers is not a suite that does; a broken one fails in its last words."""
    found = gathered(words)
    assert (found.suite, found.suite_problem) == (None, problem)


def test_a_device_out_of_reach_is_a_fact() -> None:
    """Nobody listens on the port: the facts say so, and hold nothing else."""
    bench = replace(HOST, reach=Reach(way="ssh", address="127.0.0.1", port=9))
    words = python_words(bench, Path(sys.executable))
    assert words == ("~/.local/share/perfsuite/venv/bin/python",)
    found = gather(open_target(bench.reach), bench, words, here=INSTALLED, model_bytes=None)
    assert found.link_problem is not None
    assert "refused" in found.link_problem
    assert found.suite is None
