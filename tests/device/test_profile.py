"""Device profiles, as they ship and as they are read."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from perfsuite.device.profile import PEAK_KINDS, TheoreticalPeak, _profile, find_profile, profile_names
from perfsuite.errors import DeviceError

PLAIN: dict[str, Any] = {
    "description": "a board",
    "opencl_platform": "Intel",
    "judging": {
        "session_spread_ratio": 0.02,
        "max_waiting_ratio": 0.02,
        "max_others_ratio": 0.05,
        "ceiling_spread_ratio": 0.1,
        "forecast_least_ns": 100_000,
        "forecast_tolerance_ratio": {"phase": 8.0},
    },
}


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_that_ships_is_whole(name: str) -> None:
    """Each shipped profile reads, carries its name, and allows neither nothing nor everything."""
    profile = find_profile(name)
    assert profile.name == name
    assert profile.description
    assert all(ratio > 1.0 for ratio in profile.forecast_tolerance_ratio.values())
    assert all(ratio > 1.0 for ratio in profile.calibrated_tolerance_ratio.values())
    ratios = (profile.session_spread_ratio, profile.max_waiting_ratio, profile.max_others_ratio)
    assert all(0.0 < ratio < 1.0 for ratio in (*ratios, profile.ceiling_spread_ratio))
    assert all(0.0 < ratio < 1.0 for ratio in profile.margin_ratio.values())


def test_the_host_is_a_device() -> None:
    """The machine that pytest runs on is always among the profiles."""
    assert "host" in profile_names()


@pytest.mark.parametrize("name", ["nokia3310", "", "../host", "host.toml"])
def test_an_unknown_device_is_refused(name: str) -> None:
    """An unknown name is one line with the option and the known names."""
    with pytest.raises(DeviceError, match=rf"^--device={name}: no such device; known are .*host"):
        find_profile(name)


def test_a_profile_is_read() -> None:
    """Every field comes from the file, and the OpenCL platform may be left out."""
    profile = _profile("board", PLAIN)
    assert (profile.name, profile.opencl_platform, profile.forecast_least_ns) == ("board", "Intel", 100_000)
    assert profile.forecast_tolerance_ratio == {"phase": 8.0}
    without = {key: value for key, value in PLAIN.items() if key != "opencl_platform"}
    assert _profile("board", without).opencl_platform is None


def test_weights_of_sentinels_may_be_left_out() -> None:
    """A profile says how far cases follow each sentinel, or that they follow none."""
    assert _profile("board", PLAIN).sentinel_weight_ratio == {}
    judging = {**PLAIN["judging"], "sentinel_weight_ratio": {"memory": 0.25}}
    assert _profile("board", {**PLAIN, "judging": judging}).sentinel_weight_ratio == {"memory": 0.25}
    assert all(0.0 <= weight <= 1.0 for weight in find_profile("host").sentinel_weight_ratio.values())
    assert set(find_profile("host").sentinel_weight_ratio) == {"memory", "compute"}


def test_margins_may_be_left_out() -> None:
    """A profile says by kind what passes, or leaves it to the default."""
    assert _profile("board", PLAIN).margin_ratio == {}
    judging = {**PLAIN["judging"], "margin_ratio": {"phase": 0.02}}
    assert _profile("board", {**PLAIN, "judging": judging}).margin_ratio == {"phase": 0.02}


@pytest.mark.parametrize("key", ["description", "judging", *PLAIN["judging"]])
def test_a_field_that_is_missing_is_named(key: str) -> None:
    """A profile that lacks a field is one line with the file and the field."""
    plain = deepcopy(PLAIN)
    (plain if key in plain else plain["judging"]).pop(key)
    with pytest.raises(DeviceError, match=rf"^profile board\.toml: {key} is missing$"):
        _profile("board", plain)


def test_tolerances_of_a_calibrated_forecast_may_be_left_out() -> None:
    """A profile says by kind how far beyond a calibrated forecast's upper bound a case may be, or judges none by it."""
    assert _profile("board", PLAIN).calibrated_tolerance_ratio == {}
    judging = {**PLAIN["judging"], "calibrated_tolerance_ratio": {"phase": 1.5}}
    assert _profile("board", {**PLAIN, "judging": judging}).calibrated_tolerance_ratio == {"phase": 1.5}


def test_the_host_trusts_a_calibration_more_than_ceilings() -> None:
    """Every kind that is judged by ceilings is judged by a calibration too, and more strictly."""
    host = find_profile("host")
    assert set(host.calibrated_tolerance_ratio) == set(host.forecast_tolerance_ratio)
    assert all(ratio < host.forecast_tolerance_ratio[kind] for kind, ratio in host.calibrated_tolerance_ratio.items())


PEAK: dict[str, Any] = {"processor": "cpu", "kind": "bandwidth", "per_s": 51_200_000_000, "source": "a data sheet"}


def test_theoretical_peaks_may_be_left_out() -> None:
    """A profile says what data sheets promise, with the source of each, or nothing."""
    assert _profile("board", PLAIN).theoretical_peaks == ()
    (peak,) = _profile("board", {**PLAIN, "theoretical": [PEAK]}).theoretical_peaks
    assert peak == TheoreticalPeak(processor="cpu", kind="bandwidth", per_s=51.2e9, source="a data sheet")


@pytest.mark.parametrize("name", profile_names())
def test_theoretical_peaks_that_ship_have_sources(name: str) -> None:
    """No profile promises what nobody has said."""
    for peak in find_profile(name).theoretical_peaks:
        assert peak.kind in PEAK_KINDS
        assert peak.per_s > 0
        assert peak.source


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kind": "fp64"}, "kind is 'fp64', accepted are bandwidth, fp32, f16, int8"),
        ({"per_s": 0}, "a theoretical bandwidth needs a rate above 0 and a source"),
        ({"per_s": -1.0}, "a theoretical bandwidth needs a rate above 0 and a source"),
        ({"per_s": float("nan")}, "a theoretical bandwidth needs a rate above 0 and a source"),
        ({"source": ""}, "a theoretical bandwidth needs a rate above 0 and a source"),
    ],
)
def test_a_theoretical_peak_that_cannot_be_is_refused(changes: dict[str, Any], told: str) -> None:
    """The profile is named, with what is wrong with the peak."""
    with pytest.raises(DeviceError, match=rf"^profile board\.toml: {told}$"):
        _profile("board", {**PLAIN, "theoretical": [{**PEAK, **changes}]})


@pytest.mark.parametrize("key", [*PEAK])
def test_a_field_that_a_peak_lacks_is_named(key: str) -> None:
    """A peak is whole or refused."""
    peak = {name: value for name, value in PEAK.items() if name != key}
    with pytest.raises(DeviceError, match=rf"^profile board\.toml: {key} is missing$"):
        _profile("board", {**PLAIN, "theoretical": [peak]})
