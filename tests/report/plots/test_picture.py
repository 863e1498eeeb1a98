"""Charts as files."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest

from perfsuite.cli.pictures import PICTURES
from perfsuite.errors import PerfsuiteError
from perfsuite.records.chart import Chart
from perfsuite.report.plots.picture import draw, picture_bytes, write_picture

from .conftest import BARS, CHARTS, HEAT_MAP, LINES, ROOFLINE

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: bytes) -> str:
    """All words of a picture."""
    return "\n".join("".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if at else ()) for at, name in enumerate(PICTURES)]
)
def test_every_picture_is_drawn_as_png(name: str, tmp_path: Path) -> None:
    """A PNG of 1200 pixels in width, as high as the figure is."""
    chart = PICTURES[name].chart()
    write_picture(chart, tmp_path / "picture.png")
    content = (tmp_path / "picture.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert content.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", content[16:24])
    assert width == 1200
    assert height == int(120 * draw(chart).get_figheight())
    assert 400 <= height <= 1100


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_drawn_as_svg(name: str, tmp_path: Path) -> None:
    """Well-formed, with the title, the note and the name of every panel as text."""
    chart = PICTURES[name].chart()
    write_picture(chart, tmp_path / "picture.svg")
    svg = (tmp_path / "picture.svg").read_bytes()
    assert ElementTree.fromstring(svg).tag == f"{SVG}svg"
    words = texts(svg)
    joined = " ".join(words.replace("\N{NO-BREAK SPACE}", " ").split())
    assert chart.title in joined
    assert chart.note in joined
    assert all(panel.title in words for panel in chart.panels)


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_leaves_the_picture(name: str) -> None:
    """Title, note, titles of panels, labels of axes and the legend lie within the figure."""
    figure = draw(PICTURES[name].chart())
    figure.draw_without_rendering()
    axes = [*figure.axes]
    labels = [text for each in axes for text in (each.title, each.xaxis.label, each.yaxis.label)]
    legend = [text for each in figure.legends for text in each.get_texts()]
    for text in (*figure.texts, *labels, *legend):
        if text.get_text():
            box = text.get_window_extent()
            assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, text.get_text()
            assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1, text.get_text()


@pytest.mark.parametrize("chart", CHARTS)
def test_the_same_chart_is_the_same_svg(chart: Chart) -> None:
    """Nothing of the day, of chance, or of the user's own settings is in it."""
    first = picture_bytes(chart, "svg")
    with matplotlib.rc_context({"font.size": 30.0, "svg.hashsalt": None, "axes.facecolor": "red"}):
        assert picture_bytes(chart, "svg") == first
    assert b"<dc:date>" not in first


def test_the_same_chart_is_the_same_svg_in_another_process() -> None:
    """The names inside do not depend on the process's hash seed."""
    script = (
        "import sys; from perfsuite.cli.pictures import PICTURES; "
        "from perfsuite.report.plots.picture import picture_bytes; "
        "sys.stdout.buffer.write(picture_bytes(PICTURES['life-fig6'].chart(), 'svg'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120, check=True)
    assert done.stdout == picture_bytes(PICTURES["life-fig6"].chart(), "svg")


def test_matplotlibs_global_state_is_left_alone() -> None:
    """Drawing changes no setting, and never imports pyplot."""
    before = dict(matplotlib.rcParams)
    for chart in CHARTS:
        picture_bytes(chart, "png")
    assert dict(matplotlib.rcParams) == before
    script = (
        "import sys; from perfsuite.cli.pictures import PICTURES; "
        "from perfsuite.report.plots.picture import picture_bytes; "
        "picture_bytes(PICTURES['life-fig8'].chart(), 'png'); sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=120, check=False).returncode == 0


def test_an_unknown_suffix_writes_nothing(tmp_path: Path) -> None:
    """The error is one line with the path, what was seen and what is accepted."""
    path = tmp_path / "picture.pdf"
    with pytest.raises(PerfsuiteError, match=rf"^{path}: suffix is '.pdf', accepted are .png and .svg$"):
        write_picture(LINES, path)
    assert list(tmp_path.iterdir()) == []


def test_a_chart_is_drawn_as_its_kind() -> None:
    """Lines as lines, a grid as a mesh, bars as bars, a roofline over rates."""
    assert len(draw(LINES).axes[0].lines) == 3
    assert len(draw(HEAT_MAP).axes[0].collections) == 1
    assert len(draw(BARS).axes[0].patches) == 4
    assert draw(ROOFLINE).axes[0].get_ylabel() == "rate (GFLOP/s)"
