"""Files of a board are laid out here as they are there, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perfsuite.measure.board.mirror import Mirror, mirror


@pytest.fixture
def board() -> Iterator[Mirror]:
    with mirror() as made:
        yield made


def test_a_snapshot_is_laid_out_with_its_links(board: Mirror) -> None:
    """A file behind a link lies where the link leads, and a link within a folder that is one is made there."""
    links = [
        ["sys/class/devfreq/gpu/device/driver", "sys/bus/drivers/panfrost"],
        ["sys/class/devfreq/gpu", "sys/devices/fb.gpu/devfreq/gpu"],
        ["sys/class/devfreq/gpu/device", "sys/devices/fb.gpu"],
    ]
    board.lay({"links": links, "files": [["sys/class/devfreq/gpu/governor", b"ondemand\n"], ["unread", None]]})
    assert (board.root / "sys/devices/fb.gpu/devfreq/gpu/governor").read_bytes() == b"ondemand\n"
    assert (board.root / "sys/class/devfreq/gpu/device/driver").resolve().name == "panfrost"
    assert (board.root / "unread").read_bytes() == b""
    board.write("unread", None)
    assert not (board.root / "unread").exists()


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../out", "", "a\0b", "a/" + "b" * 300])
@pytest.mark.parametrize("form", [{"links": [], "files": [["{}", b"x"]]}, {"links": [["a", "{}"]], "files": []}])
def test_what_leads_out_of_it_is_refused(board: Mirror, path: str, form: dict[str, Any]) -> None:
    filled = {key: [[path if each == "{}" else each for each in row] for row in rows] for key, rows in form.items()}
    with pytest.raises(ValueError, match=r"leads out of|File name too long"):
        board.lay(filled)
    assert not (board.root.parent / "out").exists()


def test_nothing_is_left_of_it() -> None:
    with mirror() as made:
        made.lay({"links": [["a", "b"]], "files": [["a/c", b"x"]]})
        root = made.root
    assert not Path(root).exists()
