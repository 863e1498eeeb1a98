"""What a user of pytest knows of it holds for performance cases too: choosing, repeating, listing, ending early."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from perfsuite.plugin.parameters import cases_dir
from tests.conftest import STORED_MODEL
from tests.fake_device import HostRuns

#: What each run has besides.
USUAL = ("-o", "perf_session_spread=0.01", "-k", "not kernel")

_DECODE = "phase/smollm2-135m-l2-q8_0/siso/decode"


@dataclass
class RememberingRuns(HostRuns):
    """Runs that let pytest remember what failed."""

    def __call__(self, *arguments: str, model: str = STORED_MODEL) -> pytest.RunResult:
        fixed = ("--device=host", f"--model={model}", "--perf-dir=run")
        return self.pytester.runpytest_inprocess(*fixed, *self.usual, *arguments)


@pytest.fixture
def runs(runs: HostRuns) -> HostRuns:
    return RememberingRuns(pytester=runs.pytester, device=runs.device, usual=USUAL)


def chosen(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def test_collected_tests_are_named_by_their_cases(runs: HostRuns) -> None:
    """Each line of ``--co -q`` ends with its case's id, which no other has; nothing is measured."""
    result = runs("--co", "-q")
    ids = [line.partition("[")[2].removesuffix("]") for line in chosen(result)]
    assert result.ret == 0
    assert len(ids) == len(set(ids)) > 40
    assert _DECODE in ids
    assert all(each.startswith(("phase/", "operator/")) for each in ids)
    assert runs.device.plans == []


@pytest.mark.parametrize(
    "option", ["--setup-plan", "--setup-only", "--collect-only", "--fixtures", "--markers", "--help"]
)
def test_what_only_shows_measures_nothing(runs: HostRuns, option: str) -> None:
    assert runs(option).ret == 0
    assert runs.device.plans == []
    assert not (runs.pytester.path / "run" / "run.json").exists()


def test_words_and_deselected_cases_choose_what_is_judged(runs: HostRuns) -> None:
    (decode,) = chosen(runs("-k", "test_phase and decode", "--co", "-q"))
    both = runs("-k", "test_phase and (decode or prefill)", "--deselect", decode)
    assert both.ret == 0
    assert _DECODE not in runs.cases()
    assert _DECODE.replace("decode", "prefill") in runs.cases()


@pytest.mark.long
def test_the_last_failures_run_again_alone(runs: HostRuns) -> None:
    """``--lf`` judges the cases that failed, ``--ff`` these first; pytest's cache names tests by their cases."""
    runs("--baseline=record")
    runs.device.slowdown["ffn_gate"] = 2.0
    assert runs().ret == 1
    failed = {case_id for case_id, case in runs.cases().items() if case["outcome"] == "regressed"}
    assert runs("--lf").ret == 1
    assert runs.cases().keys() == failed
    first = chosen(runs("--ff", "--co", "-q"))[: len(failed)]
    assert {line.partition("[")[2].removesuffix("]") for line in first} == failed
    (cached,) = runs.pytester.path.rglob("lastfailed")
    assert all("[phase/" in each or "[operator/" in each for each in json.loads(cached.read_text()))


def test_a_run_ends_at_the_first_failure_and_goes_on_there(runs: HostRuns) -> None:
    runs("--baseline=record")
    runs.device.slowdown["ffn_gate"] = 2.0
    runs("-x").stdout.fnmatch_lines(["*stopping after 1 failures*"])
    assert [case["outcome"] for case in runs.cases().values()].count("regressed") == 1
    runs("--sw")
    del runs.device.slowdown["ffn_gate"]
    runs("--sw").stdout.fnmatch_lines(["*skipping * already passed items*"])


@pytest.mark.parametrize(
    "option",
    [
        ("--durations=3",),
        ("--nf",),
        ("-p", "no:cacheprovider"),
        ("-p", "no:terminal", "-p", "no:labgrid"),
    ],
)
def test_other_options_of_pytest_change_no_verdict(runs: HostRuns, option: tuple[str, ...]) -> None:
    assert runs("-k", "test_phase", *option).ret == 0
    assert runs.outcomes() == {"new"}


@pytest.mark.parametrize("mark", ["skip", "xfail", "fail_at_collect"])
def test_a_kind_without_cases_is_left_out_whatever_empty_sets_mean(runs: HostRuns, mark: str) -> None:
    """A project whose empty parameter sets fail has no failure of ours."""
    result = runs("-k", "test_phase", "-o", f"empty_parameter_set_mark={mark}")
    assert result.ret == 0
    assert "skipped" not in result.parseoutcomes()


def test_a_strict_project_runs_the_cases(runs: HostRuns) -> None:
    if int(pytest.__version__.split(".")[0]) < 9:
        pytest.skip("strict mode came with pytest 9")
    runs.pytester.makepyprojecttoml(
        """
        [tool.pytest]
        strict = true
        perf_session_spread = 0.01
        perf_margin = "0.05,phase=0.02"
        filterwarnings = ["error", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]
        """
    )
    assert runs("-k", "test_phase").ret == 0


def test_a_number_where_pytest_takes_text_is_one_line(runs: HostRuns) -> None:
    if int(pytest.__version__.split(".")[0]) < 9:
        pytest.skip("[tool.pytest] came with pytest 9")
    runs.pytester.makepyprojecttoml("[tool.pytest]\nperf_margin = 0.05\n")
    result = runs()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *'perf_margin' expects a string, got float: 0.05*"])


def test_cases_are_benchmarks(runs: HostRuns) -> None:
    """``--benchmark-only`` keeps them, and leaves out a test that has neither fixture; all are in the JSON."""
    runs.pytester.makepyfile(test_other="def test_other():\n    raise AssertionError\n")
    outcomes = runs("--benchmark-only", "--benchmark-json=b.json", "test_other.py", str(cases_dir())).parseoutcomes()
    assert outcomes["skipped"] >= 1
    assert "failed" not in outcomes
    measured = json.loads((runs.pytester.path / "b.json").read_text())["benchmarks"]
    assert _DECODE in {each["fullname"] for each in measured}
