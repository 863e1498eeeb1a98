"""Runs with cases of the binding: the first one, an equal one, and one with a slower part."""

from __future__ import annotations

import pytest

from perfsuite.measure.plan import BindingPlan
from perfsuite.records.binding import Part
from tests.fake_device import HostRuns

USUAL = ("-k", "binding", "--perf-history=off")


@pytest.fixture(autouse=True)
def _with_binding(runs: HostRuns) -> None:
    runs.device.has_binding = True


def changed(runs: HostRuns, outcome: str) -> set[str]:
    """Return what door and subject the cases with an outcome are of."""
    return {"/".join(name.split("/")[3:]) for name, case in runs.cases().items() if case["outcome"] == outcome}


def test_the_first_run_is_new(runs: HostRuns) -> None:
    """All but the overhead waits for something to compare with, and each pair is one plan of the binding's."""
    assert runs().ret == 0
    assert len(changed(runs, "new")) == 35
    assert sum(isinstance(each, BindingPlan) for each in runs.device.plans) >= 5


def test_an_equal_run_has_no_alarm(runs: HostRuns) -> None:
    """Nothing is slower than what was recorded."""
    runs("--baseline=record")
    runs()
    assert not changed(runs, "regressed")
    assert {"completion/itl", "calls/ttft"} <= changed(runs, "pass")


def test_a_slower_part_is_named(runs: HostRuns) -> None:
    """It is the part by both doors, and the latencies that hold it; no other part."""
    runs("--baseline=record")
    runs.device.part_slowdown[Part.SAMPLING] = 6.0
    result = runs()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    found = changed(runs, "regressed")
    assert {"calls/itl/sampling", "completion/itl/sampling", "completion/itl"} <= found
    assert {each.split("/")[2] for each in found if each.count("/") == 2} == {"sampling"}


def test_the_run_says_what_was_measured(runs: HostRuns) -> None:
    """The versions of binding and Python stand with the cases, and the cost of a span in the closing lines."""
    result = runs()
    result.stdout.fnmatch_lines(["llama-cpp-python *, Python 3.*", "*each span of the binding's parts costs 500 ns"])
    assert "python" in runs.plain()["fingerprint"]["binding"]
