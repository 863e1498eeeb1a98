"""The pictures of a run, one file each."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.roofline_run import RowKind
from perfsuite.experiments.roofline.pictures import draw_roofline
from tests.synthetic_roofline import memory_record, prefill_row, roofline_run, row


def test_a_run_is_drawn_by_what_it_has(tmp_path: Path) -> None:
    """The base, bandwidth and the published devices are there always; operators and memory where they were measured."""
    run = roofline_run(
        row(),
        prefill_row(),
        row(kind=RowKind.OPERATOR, role="decode/ffn_up"),
        memory=(memory_record(),),
    )
    drawn = [path.name for path, title in draw_roofline(run, tmp_path / "seen.svg") if title]
    assert drawn == [f"seen-{name}.svg" for name in ("base", "operators", "memory", "bandwidth", "devices")]
    assert {path.name for path in tmp_path.iterdir()} == set(drawn)
    assert all(path.read_text().lstrip().startswith("<?xml") for path in tmp_path.iterdir())


def test_each_sweep_has_a_picture(tmp_path: Path) -> None:
    """Sweeps come in the order in which they were measured; without operators there is no picture of them."""
    rows = [
        row(sweep=sweep, setting=str(value), value=float(value)) for sweep in ("threads", "depth") for value in (1, 2)
    ]
    drawn = [path.name for path, _ in draw_roofline(roofline_run(*rows), tmp_path / "seen.png")]
    assert drawn == ["seen-threads.png", "seen-depth.png", "seen-bandwidth.png", "seen-devices.png"]
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in drawn)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A file in the place of the folder is one line."""
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(PerfsuiteError, match="taken"):
        next(draw_roofline(roofline_run(), tmp_path / "taken" / "seen.svg"))
