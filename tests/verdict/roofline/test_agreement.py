"""Two runs of the same sweeps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfsuite.verdict.roofline.agreement import agreements

from ...synthetic_roofline import roofline_run, row


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
    """What only one of the runs has measured is compared with nothing."""
    assert not list(agreements(roofline_run(row(sweep="depth")), roofline_run(row(sweep="kv"))))
