"""Two runs of the same sweeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.experiments.roofline.agreement import agreements
from perfsuite.experiments.roofline.stored_run import read_roofline
from tests.synthetic_roofline import roofline_run, row


def test_points_within_both_spreads_agree() -> None:
    """A point that is 4 % slower agrees where the processes of each run spread by 3 %."""
    first = row(samples_ns=(97_000_000, 100_000_000, 103_000_000))
    second = replace(first, samples_ns=tuple(round(1.04 * each) for each in first.samples_ns))
    (found,) = agreements(roofline_run(first), roofline_run(second))
    assert found.ratio == pytest.approx(1 / 1.04)
    assert found.spread_ratio == pytest.approx(0.06)
    assert found.is_within


def test_points_beyond_both_spreads_do_not() -> None:
    """A point that is 4 % slower or faster does not agree where the processes of each run spread by 1 %."""
    first = row(samples_ns=(99_000_000, 100_000_000, 101_000_000))
    second = replace(first, samples_ns=tuple(round(1.04 * each) for each in first.samples_ns))
    for one, other in ((first, second), (second, first)):
        (found,) = agreements(roofline_run(one), roofline_run(other))
        assert not found.is_within


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
