"""Which helper is used, and the one thing that is missing where none can be."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError, NativeBuildError
from perfsuite.measure import ebpf_helper as module
from perfsuite.measure.ebpf_helper import PROTOCOL_VERSION, check_helper, ebpf_obstacle, find_helper

HEADER = Path(__file__).parents[2] / "native" / "include" / "perfsuite" / "bpf_log.h"
GOOD = f"[ $1 = --version ] && echo perfsuite-bpf {PROTOCOL_VERSION}"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a stand-in for the helper, which counts as root's own."""
    _write(tmp_path / "perfsuite-bpf", GOOD)
    monkeypatch.setattr(module, "_is_roots_own", lambda status: not status.st_mode & 0o022)
    monkeypatch.setattr(module, "_machine_obstacle", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return tmp_path


def _write(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_version_is_that_of_the_log() -> None:
    """The helper that is looked for writes the log that bpf_log.h lays out."""
    found = re.search(r"PS_BPF_VERSION = (\d+)", HEADER.read_text())
    assert found is not None
    assert int(found[1]) == PROTOCOL_VERSION


def test_the_installed_helper_is_found(installed: Path, tmp_path: Path) -> None:
    """One that is root's own and of the right version is taken, and its check says that it works."""
    assert find_helper(tmp_path, folder=installed) == installed / "perfsuite-bpf"
    _write(installed / "perfsuite-bpf", GOOD + " || exit 0")
    assert ebpf_obstacle(tmp_path, folder=installed) is None


def test_a_missing_helper_is_told_with_how_to_install_it(installed: Path, tmp_path: Path) -> None:
    """Without one, the command that installs it is named."""
    (installed / "perfsuite-bpf").unlink()
    expected = r"no helper: .*perfsuite-bpf is not there; root installs it: sudo perfsuite trace install-helper"
    with pytest.raises(MeasurementError, match=expected):
        find_helper(tmp_path, folder=installed)
    assert re.search(expected, ebpf_obstacle(tmp_path, folder=installed) or "")


def test_a_helper_that_cannot_be_used_is_refused(installed: Path, tmp_path: Path) -> None:
    """One of another version, one that is no program, one that its group could replace, and a link in its place."""
    helper = installed / "perfsuite-bpf"

    def refused(told: str) -> None:
        with pytest.raises(MeasurementError, match=told):
            find_helper(tmp_path, folder=installed)

    _write(helper, "echo perfsuite-bpf 99")
    refused(f"says 'perfsuite-bpf 99', perfsuite-bpf {PROTOCOL_VERSION} is needed")
    helper.write_bytes(b"\x7fELF")
    refused(r"does not run \(Exec format error\)")
    _write(helper, GOOD)
    helper.chmod(0o775)
    refused("is not a file that belongs to root and that only root can write")
    helper.chmod(0o755)
    helper.rename(installed / "other")
    helper.symlink_to(installed / "other")
    refused("is not a file that belongs to root")


def test_root_builds_its_own(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a cache where others can write, as under sudo; what keeps it from building is what is told."""
    (installed / "perfsuite-bpf").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "build_helper", lambda cache_dir: cache_dir / "built")
    monkeypatch.setattr(module, "others_can_write", lambda path: None)
    assert find_helper(tmp_path, folder=installed) == tmp_path / "built"
    monkeypatch.setattr(module, "others_can_write", lambda path: path.parent)
    with pytest.raises(MeasurementError, match=r"others than root can write there.*install-helper"):
        find_helper(tmp_path, folder=installed)

    def fail(_: Path) -> Path:
        raise NativeBuildError("no clang")

    monkeypatch.setattr(module, "build_helper", fail)
    assert ebpf_obstacle(tmp_path, folder=installed) == "no clang"


def test_what_the_check_says_is_told(installed: Path, tmp_path: Path) -> None:
    """The helper's own error line is the obstacle; one that only fails is told by its exit code."""
    _write(installed / "perfsuite-bpf", GOOD + ' || { echo "note: x" >&2; echo "error: no luck" >&2; exit 1; }')
    assert ebpf_obstacle(tmp_path, folder=installed) == "no luck"
    _write(installed / "perfsuite-bpf", "exit 7")
    assert check_helper(installed / "perfsuite-bpf") == f"{installed / 'perfsuite-bpf'}: ended with 7"
    assert "does not run" in (check_helper(tmp_path / "nothing") or "")


def test_what_the_machine_lacks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Namespace, probes, types and system are looked at before any helper is."""
    monkeypatch.setattr(module, "KERNEL_TYPES", tmp_path)
    monkeypatch.setattr(module, "PMU_TYPE", tmp_path)
    monkeypatch.setattr(os, "readlink", lambda _: "pid:[4026532000]")
    assert (ebpf_obstacle(tmp_path) or "").startswith("in a container: ")
    for name, lacks in (("PMU_TYPE", "no uprobe PMU"), ("KERNEL_TYPES", "no BTF")):
        monkeypatch.setattr(module, name, tmp_path / "nothing")
        assert re.match(f"{lacks}: .*nothing is not there", ebpf_obstacle(tmp_path) or "")
    monkeypatch.setattr(module.sys, "platform", "darwin")
    assert ebpf_obstacle(tmp_path) == "not Linux but darwin; eBPF is Linux's"
