"""Planting faults in copies of the kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import OpenClError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.testing import planted_kernels
from perfsuite.testing.planted_kernels import Fault, plant


@pytest.mark.parametrize("fault", Fault)
def test_one_file_is_changed(tmp_path: Path, fault: Fault) -> None:
    """The directory is the shipped one, except tiled.cl."""
    kernels = plant(tmp_path, fault)
    shipped = sorted(path.name for path in KERNELS_DIR.glob("*.cl"))

    assert sorted(path.name for path in kernels.iterdir()) == shipped
    assert [name for name in shipped if (kernels / name).read_text() != (KERNELS_DIR / name).read_text()] == [
        "tiled.cl"
    ]


def test_each_fault_has_a_folder(tmp_path: Path) -> None:
    """Faults are planted beside each other, and not twice in one place."""
    assert len({plant(tmp_path, fault) for fault in Fault}) == len(Fault)

    with pytest.raises(OpenClError, match="the planted kernels go there"):
        plant(tmp_path, Fault.SLOW_K)


@pytest.mark.parametrize("times", [0, 2])
@pytest.mark.parametrize("fault", Fault)
def test_the_line_must_be_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, times: int) -> None:
    """A kernel that no longer has the line, or has it twice, is reported instead of left without the fault."""
    source = (KERNELS_DIR / "tiled.cl").read_text()
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "tiled.cl").write_text(source * times)
    monkeypatch.setattr(planted_kernels, "KERNELS_DIR", shipped)

    with pytest.raises(OpenClError, match=rf"tiled\.cl: {times} times .*; expected it once, to plant {fault.value}"):
        plant(tmp_path, fault)
