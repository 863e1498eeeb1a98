"""``perfsuite plot``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.cli.plot import PICTURES
from perfsuite.expectation.roofline.published import published_devices
from perfsuite.records.chart import RooflineChart
from tests.command_streams import Refused, Streams


def test_all_of_lifes_pictures_are_there() -> None:
    """Figures 3 to 9; every device with a peak and a bandwidth has its roof, and its ridge in its name."""
    assert [name for name in PICTURES if name.startswith("life-")] == [f"life-fig{number}" for number in range(3, 10)]
    chart = PICTURES["roofline-published"].chart()
    assert isinstance(chart, RooflineChart)
    labels = [roof.label for roof in chart.panels[0].roofs]
    assert "Apple M1 Pro, ridge 25.39" in labels
    assert len(labels) == sum(device.roof is not None for device in published_devices())


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["--format", "svg"], "life-fig8.svg"),
        (["--output", "new/own.svg"], "new/own.svg"),
        (["-o", "own.SVG", "--format", "svg"], "own.SVG"),
    ],
)
def test_format_and_place_can_be_chosen(arguments: list[str], written: str, tmp_path: Path) -> None:
    """By the format, by the suffix, or by both where they agree; folders are made."""
    assert main(["plot", "life-fig8", *arguments]) == 0
    assert b"<svg" in (tmp_path / written).read_bytes()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / written]


def test_several_pictures_are_written_at_once(tmp_path: Path, capsys: Streams) -> None:
    """Each under its own name; by default as PNG, and its finding is reported."""
    assert main(["plot", "life-fig6", "life-fig8", "--format", "svg"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["life-fig6.svg", "life-fig8.svg"]
    capsys.readouterr()
    assert main(["plot", "life-fig8"]) == 0
    assert (tmp_path / "life-fig8.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out == f"life-fig8.png: {PICTURES['life-fig8'].chart().title}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["life-fig8", "-o", "x.pdf"], "x.pdf: suffix is '.pdf', accepted are .png and .svg"),
        (["life-fig8", "-o", "x.png", "--format", "svg"], "--format=svg: the output x.png is .png"),
        (["life-fig8", "life-fig9", "-o", "x.png"], "--output=x.png: one file for 2 pictures"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str, refused: Refused, tmp_path: Path) -> None:
    """It says what was seen and what is accepted, and nothing is written."""
    assert message in refused(["plot", *arguments])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long_but_first
@pytest.mark.parametrize(
    ("script", "is_drawing"),
    [
        ("import perfsuite.plugin", False),
        ("from perfsuite.cli import main; main(['plot', '--list'])", False),
        ("from perfsuite.cli import main; main(['plot', 'life-fig8'])", True),
    ],
)
def test_matplotlib_is_imported_only_to_draw(script: str, is_drawing: bool) -> None:
    """Neither the plugin, nor another command, nor the list pays for it."""
    script = f"{script}\nimport sys\nsys.exit(3 if 'matplotlib' in sys.modules else 0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120, check=False)
    assert done.returncode == (3 if is_drawing else 0), done.stderr
