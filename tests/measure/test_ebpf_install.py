"""Installing the helper: what lies there afterwards, and where it is refused."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure import ebpf_install as module
from perfsuite.measure.ebpf_helper import find_helper
from perfsuite.measure.ebpf_install import CAPABILITIES_ATTRIBUTE, helper_capabilities, install_helper

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to install a program")


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replace building by a script, and return where it was asked to build."""
    asked: list[Path] = []

    def build(folder: Path) -> Path:
        asked.append(folder)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        path = folder / "perfsuite-bpf"
        path.write_text(f"#!/bin/sh\necho perfsuite-bpf {len(asked)}\n")
        return path

    monkeypatch.setattr(module, "build_helper", build)
    return asked


@as_root
def test_it_is_roots_own_with_two_capabilities(requires_ebpf: Path, tmp_path: Path) -> None:
    """The file belongs to root, only root can write it, it has the two capabilities and works."""
    installed = install_helper(tmp_path / "libexec")
    assert installed.path == tmp_path / "libexec" / "perfsuite-bpf"
    status = installed.path.lstat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, 0, 0o755)
    assert os.getxattr(installed.path, CAPABILITIES_ATTRIBUTE) == helper_capabilities()
    assert find_helper(tmp_path, folder=installed.path.parent) == installed.path
    assert [path.name for path in installed.path.parent.iterdir()] == ["perfsuite-bpf"]
    assert subprocess.run([str(installed.path), "--check"], timeout=60, check=False).returncode == 0


@as_root
def test_capabilities_are_read_as_meant(tmp_path: Path, built: list[Path]) -> None:
    """The system's own tool names the two, permitted and effective."""
    path = install_helper(tmp_path / "libexec").path
    try:
        told = subprocess.run(["/usr/sbin/getcap", str(path)], capture_output=True, text=True, timeout=60, check=True)
    except OSError:
        pytest.skip("no getcap (Debian: libcap2-bin)")
    assert told.stdout.split()[-1] == "cap_perfmon,cap_bpf=ep"


@as_root
def test_an_older_one_is_replaced(tmp_path: Path, built: list[Path]) -> None:
    """It is built anew in a folder that nobody else can enter, and takes the place of what was there."""
    folder = tmp_path / "libexec"
    install_helper(folder)
    path = install_helper(folder).path
    assert path.read_text().endswith("perfsuite-bpf 2\n")
    assert len(set(built)) == 2
    assert not any(place.exists() for place in built)


@as_root
def test_a_folder_that_others_can_write_is_refused(tmp_path: Path, built: list[Path]) -> None:
    """Neither the folder nor one above it may be open to others."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(MeasurementError, match=r"open: others than root can write there"):
        install_helper(tmp_path / "open" / "libexec")
    assert not list((tmp_path / "open").rglob("perfsuite-bpf"))


@as_root
def test_sources_that_others_can_write_are_told(
    tmp_path: Path, built: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root hears where somebody else could have changed what it has just compiled."""
    (tmp_path / "bpf").mkdir()
    monkeypatch.setattr(module, "source_root", lambda _: tmp_path)
    assert install_helper(tmp_path / "libexec").notes == ()
    os.chown(tmp_path / "bpf", 65534, 65534)
    (note,) = install_helper(tmp_path / "libexec").notes
    assert f"built from {tmp_path}, where others than root can write ({tmp_path / 'bpf'})" in note


def test_it_takes_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody else is told the command."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MeasurementError, match="takes root; run sudo perfsuite trace install-helper"):
        install_helper(tmp_path / "libexec")
    assert not (tmp_path / "libexec").exists()
