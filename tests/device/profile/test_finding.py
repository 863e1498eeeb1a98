"""Device profiles, as they ship and as they are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.conditions import NO_CONDITIONS
from perfsuite.device.profile import DEFAULT_MARGIN_RATIO, PEAK_KINDS, find_profile, profile_names
from perfsuite.device.profile.search import shipped_names
from perfsuite.device.reach import WAYS, Reach
from perfsuite.errors import DeviceError
from perfsuite.workload.catalog import find as find_architecture
from perfsuite.workload.quantization import check_quantization

#: The devices that there have to be.
SHIPPED = {
    *("host", "counted", "rubikpi", "orangepi5", "raspberrypi5", "pixel8pro", "jetson-orin-nano"),
    *("generic-ssh", "generic-adb", "generic-serial"),
}

#: No weight of a default model has more.
BYTES_A_WEIGHT = 1.0


def test_the_devices_ship() -> None:
    assert set(shipped_names()) >= SHIPPED
    assert profile_names(folders=())[0] == "host"


@pytest.mark.parametrize("name", shipped_names())
def test_every_profile_that_ships_is_whole(name: str) -> None:
    profile = find_profile(name, folders=())
    assert profile.name == profile.kind == name
    assert profile.description
    assert profile.reach.way in WAYS
    assert all(ratio > 1.0 for ratio in profile.forecast_tolerance_ratio.values())
    assert all(ratio > 1.0 for ratio in profile.calibrated_tolerance_ratio.values())
    ratios = (profile.session_spread_ratio, profile.max_waiting_ratio, profile.max_others_ratio)
    assert all(0.0 < ratio < 1.0 for ratio in (*ratios, profile.ceiling_spread_ratio))
    assert all(0.0 < ratio < 1.0 for ratio in profile.margin_ratio.values())


def test_the_host_is_this_machine_as_it_is() -> None:
    host = find_profile("host", folders=())
    assert host.is_local
    assert (host.reach, host.conditions) == (Reach(way="local"), NO_CONDITIONS)
    weights = find_profile("host", folders=()).sentinel_weight_ratio
    assert set(weights) == {"memory", "compute"}
    assert all(0.0 <= weight <= 1.0 for weight in weights.values())
    assert DEFAULT_MARGIN_RATIO == 0.05


@pytest.mark.parametrize("name", sorted(SHIPPED - {"host", "counted", "generic-ssh", "generic-adb", "generic-serial"}))
def test_a_board_is_to_be_cool_and_at_full_clocks(name: str) -> None:
    conditions = find_profile(name, folders=()).conditions
    assert conditions.governor == "performance"
    assert conditions.start_below_celsius is not None
    assert 40.0 <= conditions.start_below_celsius <= 70.0
    assert len(set(conditions.processors)) == len(conditions.processors)


@pytest.mark.parametrize("name", sorted(SHIPPED - {"counted"}))
def test_a_default_model_is_in_the_catalogue_and_fits(name: str) -> None:
    """Even with a byte a weight it takes no more than three quarters of the least memory of the board."""
    profile = find_profile(name, folders=())
    if profile.default_model is None:
        assert name in ("host", "generic-ssh", "generic-adb", "generic-serial")
        return
    architecture, _, quantization = profile.default_model.rpartition("-")
    check_quantization(quantization)
    assert profile.memory_bytes is not None
    assert find_architecture(architecture).n_parameters * BYTES_A_WEIGHT < 0.75 * profile.memory_bytes


@pytest.mark.parametrize("name", shipped_names())
def test_every_peak_that_ships_has_a_source(name: str) -> None:
    profile = find_profile(name, folders=())
    for peak in (*profile.theoretical_peaks, *profile.unofficial_peaks):
        assert peak.kind in PEAK_KINDS
        assert peak.per_s > 0
        assert len(peak.source) > 10
    assert all(peak.official for peak in profile.theoretical_peaks)
    assert not any(peak.official for peak in profile.unofficial_peaks)


@pytest.mark.parametrize(
    "name",
    [
        *("nokia3310", "", "../host", "host.toml", "/etc/passwd", ".", "..", "a/b", "../profiles/host", "devices/x"),
        *("x" * 65, "a\nb", "\x1b[31m", "host\n", "\0"),
    ],
)
def test_what_is_no_name_of_a_device_is_unknown(name: str, tmp_path: Path) -> None:
    """Also where a file of that path would be there."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.toml").write_text('description = "a board"')
    with pytest.raises(DeviceError) as caught:
        find_profile(name, folders=(tmp_path,))
    shown = name if name.isprintable() else repr(name)
    assert str(caught.value).startswith(f"--device={shown}: no such device; known are host, ")
    assert str(caught.value).isprintable()
