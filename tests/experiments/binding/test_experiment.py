"""Runs with cases of the binding: the first one, an equal one, and one with a slower part."""

from __future__ import annotations

import pytest

from perfsuite.measure.plan import BindingPlan
from perfsuite.records.binding import Part
from tests.fake_device import HostRuns

USUAL = ("-k", "test_binding", "--perf-history=off")
#: The phases name the engine that made a baseline.
RECORD = ("--baseline=record", "-k", "test_binding or test_phase")


@pytest.fixture(autouse=True)
def _with_binding(runs: HostRuns) -> None:
    runs.device.has_binding = True


def changed(runs: HostRuns, outcome: str) -> set[str]:
    """Return what door and subject the cases with an outcome are of."""
    return {"/".join(name.split("/")[3:]) for name, case in runs.cases().items() if case["outcome"] == outcome}


def n_plans(runs: HostRuns) -> int:
    return sum(isinstance(each, BindingPlan) for each in runs.device.plans)


def test_the_first_run_is_new_and_says_what_was_measured(runs: HostRuns) -> None:
    result = runs()
    assert result.ret == 0
    assert len(changed(runs, "new")) == 31
    assert n_plans(runs) == 6
    result.stdout.fnmatch_lines(["llama-cpp-python *, Python 3.*", "*each span of the binding's parts costs 500 ns"])
    assert "python" in runs.plain()["fingerprint"]["binding"]


def test_an_equal_run_is_judged_in_pairs(runs: HostRuns) -> None:
    runs(*RECORD)
    runs.device.plans.clear()
    result = runs()
    assert n_plans(runs) == 2 * 6 + 3
    assert {"load", "completion/itl", "calls/ttft", "calls/itl/logits"} <= changed(runs, "pass")
    assert not changed(runs, "regressed") | changed(runs, "incomparable") | changed(runs, "suspect")
    assert all(case["n_pairs"] == 6 for case in runs.cases().values() if not case["id"].endswith("overhead"))
    result.stdout.fnmatch_lines(["*judged in pairs with what made the baseline: binding"])
    runs.device.plans.clear()
    runs("--perf-budget=180s")
    assert n_plans(runs) == 2 * 12 + 3


def test_a_slower_part_is_named(runs: HostRuns) -> None:
    """It is the part by both doors, and the latencies that hold it; no other part, in pairs and by stored times."""
    runs(*RECORD)
    runs.device.part_slowdown[Part.SAMPLING] = 6.0
    for error, how in (("", "in pairs with what made the baseline"), ("no such symbol", "by stored times")):
        runs.device.old_binding_error = error
        result = runs()
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        found = changed(runs, "regressed")
        assert {"calls/itl/sampling", "completion/itl/sampling", "completion/itl"} <= found
        assert {each.split("/")[2] for each in found if each.count("/") == 2} == {"sampling"}
        result.stdout.fnmatch_lines([f"*judged {how}: binding"])


def test_engines_that_compute_something_else_are_not_judged(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in pairs of the native driver: INVALID, said first, unless that is allowed."""
    runs(*RECORD)
    monkeypatch.setattr("perfsuite.experiments.pairs.output_errors", lambda *_: {"the greedy tokens": (0.9,)})
    told = "the two sides compute different outputs: the greedy tokens differ by 90 % (limit 25 %)"
    for options, outcome in (((), "invalid"), (("--perf-allow-different-output",), "pass")):
        runs(*options)
        cases = [each for each in runs.cases().values() if not each["id"].endswith("overhead")]
        assert {each["outcome"] for each in cases} == {outcome}
        assert all(each["reason"].startswith(told) == (outcome == "invalid") for each in cases)
        assert runs.plain()["device_notes"][0] == f"binding: {told}"


def test_an_engine_of_another_layout_is_never_run(runs: HostRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    """The binding would fill its structs wrongly without a word; stored times judge, and the run says why."""
    runs(*RECORD)
    monkeypatch.setattr("perfsuite.experiments.binding.experiment.other_declaration", lambda old, new: "llama_batch")
    runs.device.plans.clear()
    result = runs()
    assert n_plans(runs) == 6
    result.stdout.fnmatch_lines(
        ["*so its times judge: its llama.h declares llama_batch otherwise than this binding does"]
    )


@pytest.mark.long
def test_percentiles_are_judged_where_asked(runs: HostRuns) -> None:
    asked = "--perf-margin=percentile=0.2"
    runs(*RECORD, asked)
    result = runs()
    result.stdout.fnmatch_lines(["*completion: of * gaps between tokens 95% within * and 99% within *"])
    assert not runs.cases("percentile")
    for error in ("", "no such symbol"):
        runs.device.old_binding_error = error
        runs(asked)
        found = runs.cases("percentile")
        assert {name.rpartition("/")[2] for name in found} == {"itl-p95", "itl-p99"}
        assert {case["outcome"] for case in found.values()} == {"pass"}
