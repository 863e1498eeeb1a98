"""Rows of fidelity and the run that holds them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.fidelity.scored_run import (
    FidelityKind,
    FidelityRow,
    FidelityRun,
    accuracy_percent,
    kernel_row,
    scaled_error_us_per_ms,
)
from tests.synthetic_fidelity import duplication, row


def test_execution_is_held_against_the_ground_truth() -> None:
    row = kernel_row(duplication(n_wanted=1500))
    assert (row.kind, row.name, row.n) == (FidelityKind.KERNELS, "kernel/add/count1048576/f32", 1000)
    assert (row.measured_ns, row.ground_truth_ns, row.error_ns) == (200_000, 202_000, -2000)
    assert row.interval_ns == (201_000, 204_000)
    assert row.beside_ns == {"occupied_ns": 201_000, "base_execution_ns": 203_000}
    assert row.accuracy_percent == pytest.approx(100 * 200 / 202)
    assert (row.is_measured, row.problem) == (True, None)
    assert row.note == "1000 duplicates of 1500: the time budget allows no more"
    assert kernel_row(duplication()).note == ""


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"rounds": (), "n_duplicates": 0, "n_wanted": 0, "problem": "no copy of an image"}, "no copy of an image"),
        ({"rounds": ()}, "no round was measured"),
        (
            {"rounds": tuple(replace(each, base_ns=each.duplicated_ns + 5000) for each in duplication().rounds)},
            "the ground truth is -5 ns: the base run took as long as the duplicated one",
        ),
    ],
    ids=["failed", "no rounds", "below zero"],
)
def test_what_cannot_be_scored_is_a_row_with_its_reason(changed: dict[str, Any], problem: str) -> None:
    row = kernel_row(duplication(**changed))
    assert (row.problem, row.is_measured, row.accuracy_percent, row.note) == (problem, False, None, "")


LATENCIES_NS = st.integers(min_value=1, max_value=10**12)


def test_a_printed_row_is_met() -> None:
    """The first prefill kernel of lm-Meter's table, of 82.1329 ms, has 98.85 % and 11.481 µs/ms."""
    assert accuracy_percent(81_189_900, 82_132_900) == pytest.approx(98.85, abs=0.005)
    assert scaled_error_us_per_ms(81_189_900, 82_132_900) == pytest.approx(11.481, abs=0.0005)


@pytest.mark.parametrize(
    ("measured_ns", "truth_ns", "expected_percent"),
    [(150, 100, 50), (100, 150, 200 / 3), (7, 7, 100), (300, 100, -100), (10**12 - 1, 10**12, 100 - 1e-10)],
)
def test_the_ground_truth_is_what_an_error_is_relative_to(
    measured_ns: int, truth_ns: int, expected_percent: float
) -> None:
    """150 against 100 is half of the ground truth away, 100 against 150 a third; nothing is cut off below 0."""
    assert accuracy_percent(measured_ns, truth_ns) == pytest.approx(expected_percent, rel=1e-12)


@given(measured_ns=LATENCIES_NS, ground_truth_ns=LATENCIES_NS)
def test_both_scores_tell_the_same(measured_ns: int, ground_truth_ns: int) -> None:
    """Accuracy is 100 less a tenth of the scaled error, whatever the latencies."""
    expected = 100.0 - scaled_error_us_per_ms(measured_ns, ground_truth_ns) / 10.0
    assert accuracy_percent(measured_ns, ground_truth_ns) == pytest.approx(expected, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize(
    ("measured_ns", "truth_ns", "name"),
    [
        *((1, truth, "ground_truth_ns") for truth in (0, -1, math.nan, math.inf)),
        *((measured, 1, "measured_ns") for measured in (-1, math.nan, math.inf)),
    ],
)
def test_what_is_no_latency_is_refused(measured_ns: float, truth_ns: float, name: str) -> None:
    for score in (accuracy_percent, scaled_error_us_per_ms):
        with pytest.raises(PerfsuiteError, match=f"{name} is"):
            score(measured_ns, truth_ns)


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
    assert not unmeasured.is_measured
    assert unmeasured.accuracy_percent is unmeasured.scaled_error_us_per_ms is None


def test_a_run_is_json_by_kind() -> None:
    plain = json.loads(json.dumps(RUN.to_plain(), allow_nan=False))
    (phase,), (operator,), (kernel, missing) = (plain[kind.value] for kind in FidelityKind)
    keys = {"name", "measured_ns", "ground_truth_ns", "accuracy_percent", "scaled_error_us_per_ms"}
    assert all(keys <= set(each) for each in (phase, operator, kernel, missing))
    assert (operator["rest_ns"], kernel["interval_ns"]) == (7.0, [199_000, 201_000])
    assert (missing["accuracy_percent"], missing["problem"]) == (None, "no memory")
    assert (plain["device"], plain["platform"], plain["problems"]) == ("host", "A device", ["phases: disturbed"])
    assert plain["conditions"]["clocks"] == "not known"
