"""lm-Meter's accuracies computed again, and which of them rounding cannot explain."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.published import published_dir, published_rates
from perfsuite.experiments.fidelity.command_published import (
    PublishedFidelity,
    PublishedRow,
    RowCheck,
    check_means,
    check_rows,
    published_fidelity,
)
from perfsuite.experiments.fidelity.scored_run import accuracy_percent, scaled_error_us_per_ms


def test_both_tables_are_held() -> None:
    rows = published_fidelity().rows
    phases = [row for row in rows if row.table == "phases"]
    assert len(phases) == 7 * len({row.subject for row in phases}) == 28
    seven, eight = ([row for row in rows if row.device == f"Google Pixel {name}"] for name in ("7", "8 Pro"))
    assert len(rows) == len(phases) + 2 * 16
    assert [row.name for row in seven] == [row.name for row in eight]
    assert {row.measured_ns is None for row in seven} == {True}


def test_latencies_are_in_the_steps_that_are_told() -> None:
    """Those of phases are those of the file of rates."""
    published = published_fidelity()
    found = [ns for row in published.rows for ns in (row.measured_ns, row.ground_truth_ns) if ns is not None]
    assert len(found) == 2 * 44
    assert {ns % published.latency_resolution_ns for ns in found} == {0}
    assert {ns % (10 * published.latency_resolution_ns) for ns in found} != {0}
    rates = {each.latency_ns for each in published_rates() if each.paper == "lm-Meter" and each.table == "phases"}
    assert rates
    assert rates <= {row.ground_truth_ns for row in published.rows if row.table == "phases"}


def test_a_row_has_both_latencies_or_neither(tmp_path: Path) -> None:
    plain = json.loads((published_dir() / "fidelity" / "lm-meter.json").read_bytes())
    del plain["rows"][1:]
    plain["rows"][0]["ground_truth_ns"] = None
    path = tmp_path / "x.json"
    path.write_text(json.dumps(plain))
    with pytest.raises(PerfsuiteError, match=r"rows\[0\]: embedding has one of measured_ns and"):
        published_fidelity(path)


def checked(measured_ns: int, ground_truth_ns: int, accuracy: float, error: float) -> RowCheck:
    row = PublishedRow(
        table="phases",
        device=None,
        subject="x",
        name="y",
        measured_ns=measured_ns,
        ground_truth_ns=ground_truth_ns,
        accuracy_percent=accuracy,
        scaled_error_us_per_ms=error,
    )
    (found,) = check_rows(replace(published_fidelity(), rows=(row,)))
    return found


def outside(published: PublishedFidelity) -> dict[str, RowCheck]:
    found = check_rows(published)
    return {f"{each.row.subject}/{each.row.name}": each for each in found if each.is_within is False}


@given(measured_ns=st.integers(20_000, 10**9), ground_truth_ns=st.integers(20_000, 10**9))
def test_whatever_is_rounded_is_within(measured_ns: int, ground_truth_ns: int) -> None:
    found = checked(
        round(measured_ns, -2),
        round(ground_truth_ns, -2),
        round(accuracy_percent(measured_ns, ground_truth_ns), 2),
        round(scaled_error_us_per_ms(measured_ns, ground_truth_ns), 3),
    )
    assert found.is_within
    assert found.scores_agree


def test_the_interval_is_that_of_the_extreme_latencies() -> None:
    """0.0300 against 0.0394 ms may have been 29.95 to 30.05 against 39.35 to 39.45 µs; no accuracy is above 100."""
    score = checked(30_000, 39_400, 76.06, 239.395).accuracy
    assert score is not None
    assert score.least == pytest.approx(100 * 29.95 / 39.45, rel=1e-12)
    assert score.most == pytest.approx(100 * 30.05 / 39.35, rel=1e-12)
    assert score.computed == pytest.approx(100 * 30.0 / 39.4, rel=1e-12)
    score = checked(30_000, 30_000, 100.0, 0.0).accuracy
    assert score is not None
    assert score.most == 100.0
    assert score.least == pytest.approx(100 * (1 - 0.1 / 29.95))


@pytest.mark.parametrize(("accuracy", "is_within"), [(98.84, False), (98.85, True), (98.86, False)])
def test_a_step_too_far_is_outside(accuracy: float, is_within: bool) -> None:
    assert checked(81_189_900, 82_132_900, accuracy, 11.481).is_within is is_within


@pytest.mark.parametrize(
    ("accuracy", "is_within", "is_cut"), [(99.98, False, False), (99.99, False, True), (100.0, True, False)]
)
def test_digits_that_were_cut_are_told_from_a_wrong_row(accuracy: float, is_within: bool, is_cut: bool) -> None:
    """99.9986 printed as 99.99 is cut, as 99.98 wrong, as 100.00 rounded."""
    score = checked(3_433_862_800, 3_433_814_200, accuracy, 0.014).accuracy
    assert score is not None
    assert (score.is_within, score.is_cut) == (is_within, is_cut)


def test_ten_rows_are_outside() -> None:
    """Eight accuracies of 99.99 are cut off; of a matrix kernel the error and of a softmax both are beyond rounding.

    A row that is changed is an eleventh.
    """
    published = published_fidelity()
    found = outside(published)
    cut = {name for name, each in found.items() if each.accuracy is not None and each.accuracy.is_cut}
    assert {name.rpartition("/")[2] for name in cut} == {"prefill", "end_to_end"}
    assert len(cut) == 8
    assert set(found) - cut == {"decode/dequantize_NT_matmul14_divide2_tir_tanh2_multiply8", "softmax/chunk_lse"}
    assert len(check_rows(published)) - len(found) == 34 + 16
    first, *rows = published.rows
    changed = outside(replace(published, rows=(replace(first, measured_ns=830_800), *rows)))
    assert set(changed) - set(found) == {"llama-3.2-3b-instruct/embedding"}


def test_rows_without_latencies_have_their_two_scores_compared() -> None:
    """The Pixel 7's are computed from nothing; one of the sixteen has scores that are not one."""
    found = [each for each in check_rows(published_fidelity()) if each.row.device == "Google Pixel 7"]
    assert {each.is_within for each in found} == {None}
    assert [each.row.name for each in found if not each.scores_agree] == ["chunk_lse"]


def test_one_stated_mean_is_not_that_of_its_rows() -> None:
    """The Pixel 8 Pro's is stated as 96.82 and is 97.11; the Pixel 7's is as stated."""
    eight, seven = check_means(published_fidelity())
    assert (eight.is_within, eight.stated_percent, round(eight.computed_percent, 2)) == (False, 96.82, 97.11)
    assert (seven.is_within, seven.stated_percent, round(seven.computed_percent, 2)) == (True, 96.61, 96.61)
