"""Series of rows: their order, and first against last."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.roofline_run import RowKind
from perfsuite.experiments.roofline.series import agreements, first_and_last, order_of, rows_of
from perfsuite.experiments.roofline.stored_run import read_roofline
from tests.synthetic_roofline import prefill_row, roofline_run, row


@pytest.mark.parametrize(("spread_ratio", "is_within"), [(0.03, True), (0.01, False)])
def test_points_within_both_spreads_agree(spread_ratio: float, is_within: bool) -> None:
    """A point that is 4 % slower or faster agrees where the processes of each run spread by 3 %, and not by 1 %."""
    first = row(samples_ns=tuple(round(10**8 * (1.0 + each)) for each in (-spread_ratio, 0.0, spread_ratio)))
    second = replace(first, samples_ns=tuple(round(1.04 * each) for each in first.samples_ns))
    for one, other, ratio in ((first, second, 1 / 1.04), (second, first, 1.04)):
        (found,) = agreements(roofline_run(one), roofline_run(other))
        assert found.ratio == pytest.approx(ratio)
        assert found.spread_ratio == pytest.approx(2 * spread_ratio)
        assert found.is_within is is_within


def test_points_of_one_run_alone_are_left_out() -> None:
    """What only one of the runs has measured is compared with nothing; runs that share nothing are an error."""
    depth, kv = row(sweep="depth"), row(sweep="kv")
    assert [each.case for each in agreements(roofline_run(depth, kv), roofline_run(kv))] == [kv.case]
    with pytest.raises(PerfsuiteError, match="no point in common"):
        list(agreements(roofline_run(depth), roofline_run(kv)))


def test_two_processes_agree_with_everything() -> None:
    """Fewer than three do not tell how far they spread."""
    few = row(samples_ns=(100_000_000, 100_000_000))
    (found,) = agreements(roofline_run(few), roofline_run(replace(few, samples_ns=(200_000_000,) * 3)))
    assert found.is_within


def test_two_stored_runs_agree_but_where_processes_fall_into_two_groups() -> None:
    """Of the sweeps that were run twice every point agrees, but for MLA absorbed, whose prefill has two speeds."""
    folder = Path(__file__).parents[3] / "baselines" / "rooflines"
    first, again = (read_roofline(folder / f"{name}.json") for name in ("host-sweeps", "host-sweeps-again"))
    found = tuple(agreements(first, again))
    assert len(found) == len(first.rows) == 51
    apart = {each.case.split("/")[2] for each in found if not each.is_within}
    assert apart <= {"attention-mla-absorbed-135m-q8_0"}


SLOW = row(sweep="depth", setting="4", samples_ns=(90_000_000, 100_000_000, 110_000_000))
FAST = row(sweep="depth", setting="2", samples_ns=(48_000_000, 50_000_000, 52_000_000))


def test_rows_of_a_series_keep_their_order() -> None:
    """As they were measured; the last is told over the first with the spreads of both, of few samples with any."""
    run = roofline_run(SLOW, row(), prefill_row(sweep="depth", setting="4"), FAST)
    assert rows_of(run, "depth", RowKind.DECODE) == (SLOW, FAST)
    assert rows_of(run, "depth", RowKind.WHOLE_RUN) == rows_of(run, "precision", RowKind.DECODE) == ()
    run = roofline_run(SLOW, FAST)
    assert first_and_last(run, (SLOW, FAST)) == (pytest.approx(2.0), pytest.approx(0.1 + 0.04))
    assert first_and_last(run, (FAST, SLOW))[0] == pytest.approx(0.5)
    assert order_of(roofline_run(SLOW, FAST), (SLOW, FAST)) == "4 20.0 GFLOP/s, 2 40.0 GFLOP/s"
    few = row(sweep="depth", setting="2", samples_ns=(50_000_000, 50_000_000))
    ratio, spread = first_and_last(roofline_run(SLOW, few), (SLOW, few))
    assert ratio == pytest.approx(2.0)
    assert spread == math.inf
