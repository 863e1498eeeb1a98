"""The properties of JUnit reports."""

from __future__ import annotations

from dataclasses import replace

from perfsuite.records.judgement import told_judgement
from perfsuite.records.outcome import Outcome
from perfsuite.records.run_origin import NO_ORIGIN, Commit
from perfsuite.report.exports.case_properties import case_properties, run_properties
from perfsuite.testing.run_files import synthetic_run

SMALL_RUN = synthetic_run(n_cases=30)


def test_a_case_has_all_its_figures() -> None:
    """A regressed case has every property, under its name with its unit."""
    judgement = next(each for each in SMALL_RUN.judgements if each.outcome is Outcome.REGRESSED)
    properties = case_properties(judgement)
    assert properties["perf_case"] == judgement.case_id
    assert properties["perf_outcome"] == "regressed"
    assert properties["perf_change_ratio"] == judgement.change_ratio
    assert [name.removeprefix("perf_") for name in properties] == [
        *("case", "outcome", "measured_ns", "tokens_per_s", "expected_ns", "floor_ns", "limit_ns", "baseline_ns"),
        *("change_ratio", "lower_ratio", "upper_ratio", "resolution_ratio", "reason"),
    ]


def test_what_is_not_known_is_left_out() -> None:
    """A case without times has its id, outcome and reason alone."""
    told = told_judgement("trace/a", "trace", Outcome.PASS, "fine")
    assert case_properties(told) == {"perf_case": "trace/a", "perf_outcome": "pass", "perf_reason": "fine"}
    assert run_properties("host", "a/b", {}, NO_ORIGIN) == {"perf_device": "host", "perf_workload": "a/b"}


def test_a_commit_with_changes_says_so() -> None:
    """The commit's property tells whether files differed from it."""
    origin = replace(SMALL_RUN.origin, commit=Commit(sha="ab12", is_dirty=True))
    properties = run_properties("host", "a/b", {"llama": "llama b7, ggml 1 f00d"}, origin)
    assert (properties["perf_commit"], properties["perf_run_id"]) == ("ab12-dirty", SMALL_RUN.origin.run_id)
    assert properties["perf_engine"] == "llama.cpp b7 (f00d)"
