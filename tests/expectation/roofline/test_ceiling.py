"""Ceilings as JSON: they come back as they were, and what is broken is refused by the name of its field."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfsuite.errors import MeasurementError
from perfsuite.expectation.roofline.ceiling import (
    BANDWIDTH_KINDS,
    COMPUTE_KINDS,
    Ceiling,
    IndependentRate,
    Rate,
    Resource,
)

from ...synthetic_roofline import bandwidth_ceiling, ceilings, compute_ceiling, rate

RATE = IndependentRate(
    program="numpy", resource=Resource.COMPUTE, kind="fp32", processor="cpu", n_threads=2, best_per_s=5e11
)


def test_a_rate_comes_back_as_it_was() -> None:
    """A rate equals itself after its way through plain values."""
    assert IndependentRate.from_plain(RATE.to_plain()) == RATE


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"resource": "patience"}, "resource is 'patience'"),
        ({"best_per_s": 0.0}, "best_per_s is 0.0, expected a finite number above 0"),
        ({"best_per_s": float("inf")}, "best_per_s is inf"),
        ({"surplus": 1}, "field 'surplus' is unknown"),
    ],
)
def test_what_is_no_rate_is_refused(changed: dict[str, Any], message: str) -> None:
    """An unknown resource or field, or a rate that cannot be, is a MeasurementError."""
    with pytest.raises(MeasurementError, match=message):
        IndependentRate.from_plain({**RATE.to_plain(), **changed})


CEILING = replace(bandwidth_ceiling(50e9, 1 << 20), theoretical_per_s=76.8e9, theoretical_source="data sheet")

_PER_S = st.floats(min_value=1e-3, max_value=1e18)


@st.composite
def rates(draw: st.DrawFn) -> Rate:
    """A rate whose median is not above its best."""
    median_per_s, best_per_s = sorted((draw(_PER_S), draw(_PER_S)))
    return Rate(best_per_s=best_per_s, median_per_s=median_per_s, n_rounds=draw(st.integers(1, 100)))


@st.composite
def any_ceiling(draw: st.DrawFn) -> Ceiling:
    """A ceiling, measured or missing."""
    resource = draw(st.sampled_from(Resource))
    is_bandwidth = resource is Resource.BANDWIDTH
    measured = draw(st.none() | rates())
    return Ceiling(
        processor=draw(st.text(min_size=1)),
        resource=resource,
        kind=draw(st.sampled_from(BANDWIDTH_KINDS if is_bandwidth else COMPUTE_KINDS)),
        n_threads=draw(st.none() | st.integers(1, 512)),
        working_set_bytes=draw(st.integers(1, 1 << 40)) if is_bandwidth else None,
        rate=measured,
        missing="" if measured else draw(st.text(min_size=1)),
        theoretical_per_s=draw(st.none() | _PER_S),
        theoretical_source=draw(st.text()),
    )


@given(any_ceiling())
def test_a_ceiling_comes_back_as_it_was(ceiling: Ceiling) -> None:
    """Every ceiling, measured or missing, equals itself after its way through JSON."""
    assert Ceiling.from_plain(json.loads(json.dumps(ceiling.to_plain()))) == ceiling


def test_the_spread_is_what_the_median_lacks() -> None:
    """A median of 90 under a best of 100 is a spread of a tenth; where all rounds are alike it is 0."""
    assert rate(100.0, 0.1).spread_ratio == pytest.approx(0.1)
    assert rate(100.0, 0.0).spread_ratio == 0.0


def refused(changes: dict[str, Any], of: Ceiling = CEILING) -> str:
    """Return why a ceiling with changes is refused; an ellipsis leaves a field out."""
    plain = {**of.to_plain(), **changes}
    with pytest.raises(MeasurementError, match=r"^ceiling.*; measure again$") as told:
        Ceiling.from_plain({name: value for name, value in plain.items() if value is not ...})
    return str(told.value)


@pytest.mark.parametrize("name", ["processor", "resource", "kind"])
def test_a_missing_field_is_refused(name: str) -> None:
    """Whatever is left out that no ceiling can be without, the message names it."""
    assert f"ceiling: {name} is missing" in refused({name: ...})


@pytest.mark.parametrize("plain", [None, 5, "text", [1], True])
def test_what_is_no_mapping_is_refused(plain: object) -> None:
    """Anything but a mapping is refused."""
    with pytest.raises(MeasurementError, match=r"ceiling: is .*, expected an object; measure again"):
        Ceiling.from_plain(plain)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("colour", "red", "field 'colour' is unknown"),
        ("resource", "dance", "resource is 'dance', expected one of bandwidth, compute"),
        ("kind", "fp32", "kind is 'fp32', expected one of read, copy, triad of bandwidth"),
        ("kind", None, "kind is null, expected text"),
        ("processor", "", "processor is '', expected a text that is not empty"),
        ("processor", 5, "processor is 5"),
        ("n_threads", 0, "n_threads is 0, expected a whole number of 1 or more, or null"),
        ("n_threads", "2", "n_threads is '2'"),
        ("n_threads", True, "n_threads is True"),
        ("working_set_bytes", None, "working_set_bytes is None, expected a whole number above 0 of a bandwidth"),
        ("working_set_bytes", -1, "working_set_bytes is -1, expected a whole number of 1 or more"),
        ("missing", "no reason", "missing is 'no reason', expected a reason where there is no rate, and only there"),
        ("rate", None, "missing is '', expected a reason where there is no rate, and only there"),
        ("rate", 0, "rate is 0, expected an object, or null"),
        ("rate", {}, "rate: best_per_s is missing"),
        ("theoretical_per_s", -1.0, "theoretical_per_s is -1.0, expected a finite number above 0, or null"),
        ("theoretical_per_s", math.nan, "theoretical_per_s is nan"),
    ],
)
def test_a_field_that_no_ceiling_has_is_named(name: str, value: Any, told: str) -> None:
    """A value that cannot be is refused with its field and what is accepted."""
    assert told in refused({name: value})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("best_per_s", [0, 0.0, -1.0, math.nan, math.inf, "fast", None, True]),
        ("median_per_s", [0, 0.0, -1.0, math.nan, math.inf, "fast", None, True, 51e9]),
        ("n_rounds", [0, 1.5]),
    ],
)
def test_a_rate_that_nothing_has_is_refused(name: str, values: list[Any]) -> None:
    """Zero, negative, infinite and missing rates, a median above the best, and no round, are refused by their name."""
    for value in values:
        assert name in refused({"rate": {**CEILING.to_plain()["rate"], name: value}})


def test_arithmetic_has_no_working_set() -> None:
    """A working set of arithmetic is refused, and so is a kind of another resource."""
    arithmetic = compute_ceiling(1e9)
    assert "working_set_bytes is 5, expected" in refused({"working_set_bytes": 5}, arithmetic)
    assert "kind is 'triad', expected one of fp32, f16, int8 of compute" in refused({"kind": "triad"}, arithmetic)


def test_a_missing_ceiling_comes_back() -> None:
    """What a processor does not have keeps its reason."""
    missing = [each for each in ceilings() if each.rate is None]
    assert [(each.kind, each.missing) for each in missing] == [("f16", "the processor has none")]
    assert [Ceiling.from_plain(each.to_plain()) for each in missing] == missing
