"""Setting the frequency governor, in a made-up ``/sys``."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.device.governors import governor_set, settable_governors
from perfsuite.errors import DeviceError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two clusters of cores, one of which offers more governors than the other."""
    offers = {0: "performance powersave schedutil", 4: "performance powersave"}
    for number, offered in offers.items():
        policy = tmp_path / f"sys/devices/system/cpu/cpufreq/policy{number}"
        policy.mkdir(parents=True)
        (policy / "scaling_available_governors").write_text(f"{offered}\n")
        (policy / "scaling_governor").write_text("schedutil\n" if number == 0 else "powersave\n")
    return tmp_path


def chosen(root: Path) -> list[str]:
    """Return the governor of each cluster."""
    return [path.read_text().strip() for path in sorted(root.rglob("scaling_governor"))]


def test_what_every_core_offers_is_settable(root: Path) -> None:
    """A governor that one cluster lacks is left out."""
    assert settable_governors(root) == ("performance", "powersave")


def test_no_control_offers_nothing(tmp_path: Path) -> None:
    """A kernel without cpufreq has no governors."""
    assert settable_governors(tmp_path) == ()


def test_a_governor_is_set_and_restored(root: Path) -> None:
    """Every cluster gets it, and has its own back afterwards."""
    with governor_set("performance", root):
        assert chosen(root) == ["performance", "performance"]
    assert chosen(root) == ["schedutil", "powersave"]


def test_a_failure_within_restores_too(root: Path) -> None:
    """What raises leaves no governor behind."""
    with pytest.raises(KeyError), governor_set("powersave", root):
        raise KeyError
    assert chosen(root) == ["schedutil", "powersave"]


def test_none_changes_nothing(root: Path) -> None:
    """Without a name all stays as it is."""
    with governor_set(None, root):
        assert chosen(root) == ["schedutil", "powersave"]


@pytest.mark.parametrize("kept", ["schedutil", None])
def test_a_governor_that_is_not_taken_is_one_line(
    root: Path, kept: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that ignores the write, or refuses it, is told with the file."""

    def write(path: Path, text: str) -> int:
        if kept is None:
            raise PermissionError(13, "Permission denied")
        return len(text)

    monkeypatch.setattr(Path, "write_text", write)
    with pytest.raises(DeviceError, match="policy0/scaling_governor"), governor_set("performance", root):
        pass
