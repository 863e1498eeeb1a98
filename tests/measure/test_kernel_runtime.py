"""The environment of processes that use OpenCL: a vendors directory of our own, with the system's drivers in it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from perfsuite.measure.kernel_runtime import RUNTIME_ICD, lack_of_driver, opencl_environment

RUNTIME = Path("/opt/runtime/lib/libintelocl.so")


@pytest.fixture
def system_vendors(tmp_path: Path) -> Path:
    vendors = tmp_path / "vendors"
    vendors.mkdir()
    (vendors / "pocl.icd").write_text("/usr/lib/libpocl.so.2\n")
    (vendors / "mali.icd").write_text("libmali.so\n")
    return vendors


def _entries(environment: object) -> dict[str, str]:
    assert isinstance(environment, dict)
    return {path.name: path.read_text() for path in Path(environment["OCL_ICD_VENDORS"]).iterdir()}


def test_system_drivers_stay(tmp_path: Path, system_vendors: Path) -> None:
    environment = opencl_environment(tmp_path / "cache", system_vendors=system_vendors, runtime=RUNTIME)
    assert _entries(environment) == {
        RUNTIME_ICD: f"{RUNTIME}\n",
        "pocl.icd": "/usr/lib/libpocl.so.2\n",
        "mali.icd": "libmali.so\n",
    }


@pytest.mark.parametrize(
    ("inherited", "drivers"), [("", {"pocl.icd", "mali.icd"}), ("pocl.icd", {"pocl.icd"}), ("none", set())]
)
def test_inherited_drivers(tmp_path: Path, system_vendors: Path, inherited: str, drivers: set[str]) -> None:
    """OCL_ICD_VENDORS of the parent, a directory or one driver's file, stands in for the system's directory."""
    named = str(system_vendors / inherited)
    environment = opencl_environment(tmp_path, inherited=named, system_vendors=tmp_path / "none", runtime=RUNTIME)
    assert set(_entries(environment)) == {RUNTIME_ICD, *drivers}


def test_own_directory_inherited(tmp_path: Path, system_vendors: Path) -> None:
    """A child of a child gets the same directory, with the runtime in it once.

    A driver that is installed later gets a new directory; the old one is left to those who use it.
    """
    first = opencl_environment(tmp_path / "cache", system_vendors=system_vendors, runtime=RUNTIME)
    second = opencl_environment(tmp_path / "cache", inherited=first["OCL_ICD_VENDORS"], runtime=RUNTIME)
    assert second == first
    (system_vendors / "new.icd").write_text("libnew.so\n")
    third = opencl_environment(tmp_path / "cache", system_vendors=system_vendors, runtime=RUNTIME)
    assert "new.icd" in _entries(third)
    assert "new.icd" not in _entries(first)


def test_lost_race(tmp_path: Path, system_vendors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two processes that write the directory at once, the slower one takes the other's and leaves no draft."""
    first = opencl_environment(tmp_path / "cache", system_vendors=system_vendors, runtime=RUNTIME)
    other = Path(first["OCL_ICD_VENDORS"]).rename(tmp_path / "other")
    make_draft = tempfile.mkdtemp

    def make_draft_too_late(**arguments: Any) -> str:
        other.rename(first["OCL_ICD_VENDORS"])
        return make_draft(**arguments)

    monkeypatch.setattr(tempfile, "mkdtemp", make_draft_too_late)
    second = opencl_environment(tmp_path / "cache", system_vendors=system_vendors, runtime=RUNTIME)
    assert second == first
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [Path(first["OCL_ICD_VENDORS"]).name]


def test_a_machine_without_a_driver_is_told_what_brings_one(
    tmp_path: Path, system_vendors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An .icd file, named or where systems have them, or the runtime is enough."""
    monkeypatch.setattr("perfsuite.measure.kernel_runtime.find_runtime", lambda: None)
    lack = lack_of_driver(None, tmp_path / "none")
    assert lack == "needs an OpenCL driver, and none is installed; run: pip install 'perfsuite[opencl]'"
    assert lack_of_driver(None, system_vendors) is lack_of_driver(str(system_vendors / "pocl.icd")) is None
    monkeypatch.setattr("perfsuite.measure.kernel_runtime.find_runtime", lambda: RUNTIME)
    assert lack_of_driver(None, tmp_path / "none") is None
