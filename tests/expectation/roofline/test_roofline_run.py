"""Runs and rows: what they say of themselves, and that broken records are refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import Resource, Survey
from perfsuite.expectation.roofline.point import Regime
from perfsuite.expectation.roofline.roofline_run import RooflineRun

from ...json_places import places, with_value
from ...synthetic_roofline import (
    rate,
    roofline_run,
    row,
    subject,
    survey,
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "own-q8_0/siso/t2"),
        ({"type_k": "q8_0"}, "own-q8_0/siso/kv-q8_0-f16-t2"),
        ({"flash_attn": False, "type_k": "f32", "type_v": "f32"}, "own-q8_0/siso/no-flash-attn-kv-f32-f32-t2"),
    ],
)
def test_a_name_holds_what_is_not_usual(changes: dict[str, object], expected: str) -> None:
    """Weights, scenario and threads are always told; flash attention and the cache's types where they differ."""
    assert subject(**changes).name == expected


def plain_run() -> Any:
    return json.loads(json.dumps(roofline_run().to_plain()))


def test_time_is_the_median_and_spread_half_the_range() -> None:
    """One slow process moves the median little; the spread is half of what lies between the outer samples."""
    of = row(samples_ns=(100, 90, 110, 101, 400))
    assert of.time_ns == 101
    assert of.spread_ratio == pytest.approx(155 / 101)
    assert row(samples_ns=(100, 110)).time_ns == 105.0
    assert row(samples_ns=(5,)).spread_ratio == 0.0


def test_rows_are_placed_under_their_own_threads() -> None:
    """With half of the threads, and so of the bandwidth, the same time is twice the share."""
    one, two = row(subject=subject(n_threads=1)), row()
    run = roofline_run(one, two, survey=survey(1, 2))
    assert run.point(two).attainable_ratio == pytest.approx(0.5)
    assert run.point(one).attainable_ratio == pytest.approx(1.0)
    assert run.point(two).case == two.case
    of = row(subject=subject(n_threads=3))
    with pytest.raises(MeasurementError, match="ceilings of cpu with 3 threads"):
        roofline_run(of).point(of)


def test_phases_lie_on_both_sides_of_the_ridge() -> None:
    """Decode is bound by memory and prefill by arithmetic, each at half of what it could."""
    run = roofline_run()
    decode, prefill = (run.point(each) for each in run.rows)
    assert (decode.regime, prefill.regime) == (Regime.MEMORY, Regime.COMPUTE)
    assert (decode.attainable_ratio, prefill.attainable_ratio) == pytest.approx((0.5, 0.5))


def test_the_spread_of_a_rows_ceilings_is_the_surveys() -> None:
    """The spread over a row is that of what limits it: of memory over decode, of arithmetic over prefill."""
    swinging = tuple(
        replace(each, rate=rate(each.rate.best_per_s, 0.3))
        if each.rate and each.resource is Resource.BANDWIDTH
        else each
        for each in survey().ceilings
    )
    run = roofline_run(survey=Survey(ceilings=swinging))
    decode, prefill = run.rows
    assert run.spread_ratio(decode) == pytest.approx(0.3)
    assert run.spread_ratio(prefill) == pytest.approx(0.1)


@pytest.mark.long
@given(
    st.sampled_from([*places(plain_run())]),
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([[], {}, [None]]),
)
def test_any_break_is_refused_or_harmless(at: tuple[str | int, ...], value: Any) -> None:
    """Whatever is in any place of a record, it is refused in words or every row still has its point."""
    try:
        run = RooflineRun.from_plain(with_value(plain_run(), at, value))
        for each in run.rows:
            point = run.point(each)
            assert point.flops_per_s > 0
            assert point.attainable_flops_per_s > 0
            assert point.potential.decades == point.potential.decades
            assert each.spread_ratio >= 0
            assert each.case
    except MeasurementError:
        pass
