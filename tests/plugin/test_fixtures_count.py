"""``perf.count``: a test counts a function, and is judged by what was committed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError, NativeBuildError
from perfsuite.measure.counted_call import CountedCall
from perfsuite.records.counts import METRICS, Counts, read_own_counts
from tests.fake_device import HostRuns

OWN = "perfsuite.experiments.own.experiment"

SAME = Counts(**dict.fromkeys(METRICS, 1000))

_TEST = """
def test_sort(perf):
    perf.count("function/sort", sorted, [3, 1, 2])
"""


def counts(monkeypatch: pytest.MonkeyPatch, *found: Counts | MeasurementError) -> None:
    left = list(found)

    def count_call(call: CountedCall, tool: Path, *, limit_s: float) -> Counts:
        each = left.pop(0)
        if isinstance(each, MeasurementError):
            raise each
        return each

    monkeypatch.setattr(f"{OWN}.count_call", count_call)
    monkeypatch.setattr(f"{OWN}.build_counting_tool", lambda cache_dir: cache_dir)


def test_counts_are_kept_and_judged(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """New at first, then as before, then more work, in a file that can be committed."""
    runs.pytester.makepyfile(_TEST)
    path = str(runs.pytester.path)
    more = replace(SAME, instructions=1100)
    counts(monkeypatch, *(SAME,) * 6, more, more)
    assert runs(path).ret == 0
    assert runs.cases()["counted/function/sort"]["outcome"] == "new"
    assert runs(path, "--baseline=record").ret == 0
    kept = read_own_counts(runs.pytester.path / "baselines" / "counted" / "own" / "function" / "sort.json")
    assert kept is not None
    assert kept.counts == SAME
    assert runs(path).ret == 0
    assert runs.cases()["counted/function/sort"]["outcome"] == "pass"
    result = runs(path)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["regressed: counted/function/sort: 1,100 instructions, 1,000 before (+10.000%)"])


def test_two_processes_that_differ_decide_nothing(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.pytester.makepyfile(_TEST)
    counts(monkeypatch, SAME, replace(SAME, allocations=1001))
    runs(str(runs.pytester.path), "--perf-allow-undecided")
    (case,) = runs.cases().values()
    assert case["outcome"] == "inconclusive"
    assert case["reason"].startswith("1,001 allocations in one process and 1,000 in another; keep time")


def test_a_call_that_fails_fails_its_test(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.pytester.makepyfile(_TEST)
    counts(monkeypatch, MeasurementError("it raised ValueError: no (a.py:1)"))
    result = runs(str(runs.pytester.path))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["function/sort: it raised ValueError: no (a.py:1)"])
    result.stdout.no_fnmatch_line("*During handling*")


def test_a_name_that_no_file_can_have_is_refused(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written outside of the folder of baselines."""
    runs.pytester.makepyfile("def test_sort(perf):\n    perf.count('../sort', sorted, [])\n")
    counts(monkeypatch)
    result = runs(str(runs.pytester.path))
    result.stdout.fnmatch_lines(["../sort: '../sort' is no name of a case; expected one such as function/sort-10k"])


def test_without_valgrind_a_case_is_invalid(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(cache_dir: Path) -> Path:
        raise NativeBuildError("counting: no valgrind on the PATH; install it")

    runs.pytester.makepyfile(_TEST)
    monkeypatch.setattr(f"{OWN}.build_counting_tool", missing)
    runs(str(runs.pytester.path))
    (case,) = runs.cases().values()
    assert (case["outcome"], case["reason"]) == ("invalid", "counting: no valgrind on the PATH; install it")
