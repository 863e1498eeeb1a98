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


def test_a_helper_that_others_can_write_is_refused(installed: Path, tmp_path: Path) -> None:
    """A helper that its group could replace is not run."""
    (installed / "perfsuite-bpf").chmod(0o775)
    with pytest.raises(MeasurementError, match="is not a file that belongs to root and that only root can write"):
        find_helper(tmp_path, folder=installed)


def test_a_link_is_refused(installed: Path, tmp_path: Path) -> None:
    """A link in the helper's place is not followed."""
    (installed / "perfsuite-bpf").rename(installed / "other")
    (installed / "perfsuite-bpf").symlink_to(installed / "other")
    with pytest.raises(MeasurementError, match="is not a file that belongs to root"):
        find_helper(tmp_path, folder=installed)


def test_a_helper_of_another_version_is_refused(installed: Path, tmp_path: Path) -> None:
    """A helper that writes another log is told with both versions."""
    _write(installed / "perfsuite-bpf", "echo perfsuite-bpf 99")
    with pytest.raises(MeasurementError, match=f"says 'perfsuite-bpf 99', perfsuite-bpf {PROTOCOL_VERSION} is needed"):
        find_helper(tmp_path, folder=installed)


def test_a_helper_that_does_not_run_is_told(installed: Path, tmp_path: Path) -> None:
    """A file that is no program is an error, not a traceback."""
    (installed / "perfsuite-bpf").write_bytes(b"\x7fELF")
    with pytest.raises(MeasurementError, match=r"does not run \(Exec format error\)"):
        find_helper(tmp_path, folder=installed)


def test_root_builds_its_own(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root without an installed helper uses one out of the cache; what keeps it from building is what is told."""
    (installed / "perfsuite-bpf").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "build_helper", lambda cache_dir: cache_dir / "built")
    monkeypatch.setattr(module, "others_can_write", lambda path: None)
    assert find_helper(tmp_path, folder=installed) == tmp_path / "built"

    def fail(_: Path) -> Path:
        raise NativeBuildError("no clang")

    monkeypatch.setattr(module, "build_helper", fail)
    assert ebpf_obstacle(tmp_path, folder=installed) == "no clang"


def test_root_runs_nothing_that_others_could_have_put_there(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache in somebody else's home, as under sudo, is no place for a program that root runs."""
    (installed / "perfsuite-bpf").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "build_helper", lambda cache_dir: cache_dir / "built")
    monkeypatch.setattr(module, "others_can_write", lambda path: path.parent)
    with pytest.raises(MeasurementError, match=r"others than root can write there.*install-helper"):
        find_helper(tmp_path, folder=installed)


def test_what_the_check_says_is_told(installed: Path, tmp_path: Path) -> None:
    """The helper's own error line is the obstacle; one that only fails is told by its exit code."""
    _write(installed / "perfsuite-bpf", GOOD + ' || { echo "note: x" >&2; echo "error: no luck" >&2; exit 1; }')
    assert ebpf_obstacle(tmp_path, folder=installed) == "no luck"
    _write(installed / "perfsuite-bpf", "exit 7")
    assert check_helper(installed / "perfsuite-bpf") == f"{installed / 'perfsuite-bpf'}: ended with 7"
    assert "does not run" in (check_helper(tmp_path / "nothing") or "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("KERNEL_TYPES", "no BTF: .*nothing is not there"), ("PMU_TYPE", "no uprobe PMU: .*nothing is not there")],
)
def test_what_the_kernel_lacks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    """Types and probes are looked for before any helper is."""
    for each in ("KERNEL_TYPES", "PMU_TYPE"):
        monkeypatch.setattr(module, each, tmp_path)
    monkeypatch.setattr(module, name, tmp_path / "nothing")
    assert re.match(expected, ebpf_obstacle(tmp_path) or "")


def test_a_container_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another namespace of processes, the numbers that the kernel's programs see are not ours."""
    for each in ("KERNEL_TYPES", "PMU_TYPE"):
        monkeypatch.setattr(module, each, tmp_path)
    monkeypatch.setattr(os, "readlink", lambda _: "pid:[4026532000]")
    assert "in a container" in (ebpf_obstacle(tmp_path) or "")


def test_another_system_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """eBPF is Linux's."""
    monkeypatch.setattr(module.sys, "platform", "darwin")
    assert ebpf_obstacle(tmp_path) == "not Linux but darwin; eBPF is Linux's"
