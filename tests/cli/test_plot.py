"""``perfsuite plot``."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.cli.plot import PICTURES
from perfsuite.expectation.roofline.published import published_devices
from perfsuite.records.chart import XYChart
from tests.command_streams import Refused, Streams


def test_all_of_lifes_pictures_are_there() -> None:
    """Figures 3 to 9; every device with a peak and a bandwidth has its roof, and its ridge in its name."""
    assert [name for name in PICTURES if name.startswith("life-")] == [f"life-fig{number}" for number in range(3, 10)]
    chart = PICTURES["roofline-published"][1]()
    assert isinstance(chart, XYChart)
    labels = [roof.label for roof in chart.panels[0].lines]
    assert "Apple M1 Pro, ridge 25.39" in labels
    assert len(labels) == sum(device.roof is not None for device in published_devices())


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_pictures_are_written_where_asked(tmp_path: Path, capsys: Streams) -> None:
    """One to the output, whose folders are made; several each under its own name, and its finding is reported."""
    assert main(["plot", "life-fig8", "-o", "new/own.SVG"]) == 0
    assert "<svg" in (tmp_path / "new" / "own.SVG").read_text()
    capsys.readouterr()
    assert main(["plot", "life-fig6", "life-fig8"]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.svg")) == ["life-fig6.svg", "life-fig8.svg"]
    assert capsys.readouterr().out.splitlines()[1] == f"life-fig8.svg: {PICTURES['life-fig8'][1]().title}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["life-fig8", "-o", "x.png"], "x.png: suffix is '.png', only .svg is drawn; a browser, Inkscape"),
        (["life-fig8", "life-fig9", "-o", "x.svg"], "--output=x.svg: one file for 2 pictures"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str, refused: Refused, tmp_path: Path) -> None:
    """It says what was seen and what is accepted, and nothing is written."""
    assert message in refused(["plot", *arguments])
    assert list(tmp_path.iterdir()) == []
