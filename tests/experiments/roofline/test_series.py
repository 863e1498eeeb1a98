"""Series of rows: their order, and first against last."""

from __future__ import annotations

import math

import pytest

from perfsuite.expectation.roofline.roofline_run import RowKind
from perfsuite.experiments.roofline.series import first_and_last, order_of, rows_of
from tests.synthetic_roofline import prefill_row, roofline_run, row

SLOW = row(sweep="depth", setting="4", samples_ns=(90_000_000, 100_000_000, 110_000_000))
FAST = row(sweep="depth", setting="2", samples_ns=(48_000_000, 50_000_000, 52_000_000))


def test_rows_of_a_series_keep_their_order() -> None:
    """Only the sweep's rows of one kind are there, as they were measured and not sorted."""
    run = roofline_run(SLOW, row(), prefill_row(sweep="depth", setting="4"), FAST)
    assert rows_of(run, "depth", RowKind.DECODE) == (SLOW, FAST)
    assert rows_of(run, "depth", RowKind.WHOLE_RUN) == rows_of(run, "precision", RowKind.DECODE) == ()


def test_the_last_is_told_over_the_first() -> None:
    """Half the time for the same work is twice the rate; the spreads of both ends add."""
    run = roofline_run(SLOW, FAST)
    assert first_and_last(run, (SLOW, FAST)) == (pytest.approx(2.0), pytest.approx(0.1 + 0.04))
    assert first_and_last(run, (FAST, SLOW))[0] == pytest.approx(0.5)


def test_rates_are_told_by_setting() -> None:
    """2 GFLOP in 100 and in 50 ms."""
    assert order_of(roofline_run(SLOW, FAST), (SLOW, FAST)) == "4 20.0 GFLOP/s, 2 40.0 GFLOP/s"


def test_two_processes_do_not_tell_how_far_they_spread() -> None:
    """With fewer than three samples at one end, every ratio lies within the spread."""
    few = row(sweep="depth", setting="2", samples_ns=(50_000_000, 50_000_000))
    ratio, spread = first_and_last(roofline_run(SLOW, few), (SLOW, few))
    assert ratio == pytest.approx(2.0)
    assert spread == math.inf
