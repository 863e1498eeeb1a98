"""Rows of fidelity and the run that holds them."""

from __future__ import annotations

import json

import pytest

from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRow, FidelityRun
from tests.synthetic_fidelity import row

RUN = FidelityRun(
    device="host",
    platform="A device",
    conditions={"governor": "none", "clocks": "not known"},
    rows=(
        row("decode", 5_000_500, 5_000_000),
        row("prefill", 99.0, 100.0, kind=FidelityKind.OPERATORS, beside_ns={"rest_ns": 7.0}),
        row("kernel/add/count8/f32", 198_000, 200_000, interval_ns=(199_000, 201_000), note="few"),
        row("kernel/add/count9/f32", None, None, problem="no memory"),
    ),
    problems=("phases: disturbed",),
)


def test_scores_are_of_the_rows_own_times() -> None:
    """Accuracy and scaled error follow from measured time and ground truth."""
    assert RUN.rows[0].accuracy_percent == pytest.approx(99.99)
    assert RUN.rows[2].scaled_error_us_per_ms == pytest.approx(10.0)
    assert all(each.is_measured for each in RUN.rows[:3])


@pytest.mark.parametrize(
    "unmeasured",
    [
        row("kernel/a", None, 100.0),
        row("kernel/a", 100.0, None),
        row("kernel/a", 100.0, 0.0),
        row("kernel/a", 100.0, 100.0, problem="computes wrongly"),
    ],
    ids=["no time", "no ground truth", "zero", "problem"],
)
def test_without_both_times_there_is_no_score(unmeasured: FidelityRow) -> None:
    """A row that lacks a time, or that something speaks against, has no accuracy, not even a bad one."""
    assert not unmeasured.is_measured
    assert unmeasured.accuracy_percent is unmeasured.scaled_error_us_per_ms is None


def test_a_run_is_json_by_kind() -> None:
    """Each kind is a list of rows with the five keys and more, and unmeasured scores are null."""
    plain = json.loads(json.dumps(RUN.to_plain(), allow_nan=False))
    assert [len(plain[kind]) for kind in ("phases", "operators", "kernels")] == [1, 1, 2]
    keys = {"name", "measured_ns", "ground_truth_ns", "accuracy_percent", "scaled_error_us_per_ms"}
    assert all(keys <= set(each) for kind in FidelityKind for each in plain[kind.value])
    assert plain["operators"][0]["rest_ns"] == 7.0
    assert plain["kernels"][0]["interval_ns"] == [199_000, 201_000]
    assert plain["kernels"][1]["accuracy_percent"] is None
    assert plain["kernels"][1]["problem"] == "no memory"
    assert (plain["device"], plain["platform"], plain["problems"]) == ("host", "A device", ["phases: disturbed"])
    assert plain["conditions"]["clocks"] == "not known"
