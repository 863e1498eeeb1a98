"""lm-Meter's accuracies computed again, and which of them rounding cannot explain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.experiments.fidelity.command_published import (
    PrintedScore,
    PublishedFidelity,
    PublishedRow,
    RowCheck,
    check_rows,
    published_fidelity,
)
from perfsuite.experiments.fidelity.scored_run import accuracy_percent, scaled_error_us_per_ms


def checked(measured_ns: int, ground_truth_ns: int, percent: float, error: float) -> RowCheck:
    row = PublishedRow(
        table="phases",
        device=None,
        subject="x",
        name="y",
        measured_ns=measured_ns,
        ground_truth_ns=ground_truth_ns,
        accuracy_percent=percent,
        scaled_error_us_per_ms=error,
    )
    (found,) = check_rows(replace(published_fidelity(), rows=(row,)))
    return found


def accuracy(check: RowCheck) -> PrintedScore:
    assert check.scores is not None
    return check.scores[0]


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
    score = accuracy(checked(30_000, 39_400, 76.06, 239.395))
    assert score.least == pytest.approx(100 * 29.95 / 39.45, rel=1e-12)
    assert score.most == pytest.approx(100 * 30.05 / 39.35, rel=1e-12)
    assert score.computed == pytest.approx(100 * 30.0 / 39.4, rel=1e-12)
    score = accuracy(checked(30_000, 30_000, 100.0, 0.0))
    assert score.most == 100.0
    assert score.least == pytest.approx(100 * (1 - 0.1 / 29.95))


@pytest.mark.parametrize(
    ("printed", "is_within", "is_cut"), [(99.98, False, False), (99.99, False, True), (100.0, True, False)]
)
def test_digits_that_were_cut_are_told_from_a_wrong_row(printed: float, is_within: bool, is_cut: bool) -> None:
    """99.9986 printed as 99.99 is cut, as 99.98 wrong, as 100.00 rounded."""
    score = accuracy(checked(3_433_862_800, 3_433_814_200, printed, 0.014))
    assert (score.is_within, score.is_cut) == (is_within, is_cut)


def test_ten_rows_are_outside() -> None:
    """Eight accuracies of 99.99 are cut off; of a matrix kernel the error and of a softmax both are beyond rounding.

    A row that is changed is an eleventh.
    """
    published = published_fidelity()
    found = outside(published)
    cut = {name for name, each in found.items() if accuracy(each).is_cut}
    assert {name.rpartition("/")[2] for name in cut} == {"prefill", "end_to_end"}
    assert len(cut) == 8
    assert set(found) - cut == {"decode/dequantize_NT_matmul14_divide2_tir_tanh2_multiply8", "softmax/chunk_lse"}
    assert len(check_rows(published)) - len(found) == 34 + 16
    first, *rows = published.rows
    changed = outside(replace(published, rows=(replace(first, measured_ns=830_800), *rows)))
    assert set(changed) - set(found) == {"llama-3.2-3b-instruct/embedding"}
