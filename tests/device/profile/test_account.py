"""What a profile says in the end, and where each value is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.device.profile.account import profile_account
from perfsuite.errors import DeviceError


def test_every_value_is_told_with_its_file(tmp_path: Path) -> None:
    """One's own, those taken over, the defaults, and what nobody said."""
    (tmp_path / "desk.toml").write_text("extends = 'rubikpi'\n[reach]\nport = 2222\n")
    account = profile_account("desk", folders=(tmp_path,))
    by_key = {each.key: each for each in account.values}
    files = {key: None if each.file is None else each.file.name for key, each in by_key.items()}
    assert (by_key["reach.port"].value, files["reach.port"]) == (2222, "desk")
    assert (by_key["conditions.governor"].value, files["conditions.governor"]) == ("performance", "rubikpi")
    assert files["judging.session_spread_ratio"] == "host"
    assert (by_key["reach.address"].value, files["reach.address"]) == ("desk", None)
    assert account.profile == find_profile("desk", folders=(tmp_path,))
    assert [file.name for file in account.files] == ["desk", "rubikpi"]


def test_the_peaks_have_their_file(tmp_path: Path) -> None:
    """That from which all of them are, as they are taken over whole or not at all."""
    (tmp_path / "desk.toml").write_text("extends = 'rubikpi'\n")
    taken = profile_account("desk", folders=(tmp_path,)).peaks_file
    assert taken is not None
    assert taken.name == "rubikpi"
    assert profile_account("host", folders=()).peaks_file is None


def test_an_unknown_device_is_told() -> None:
    """As it was asked for."""
    with pytest.raises(DeviceError, match=r"^NAME=toaster: no such device; known are host, "):
        profile_account("toaster", folders=(), asked="NAME=")
