"""The ``/sys`` trees of boards under tests/device/trees, laid out as files, and what the survey reads in them."""

from __future__ import annotations

from pathlib import Path

from perfsuite.device.probe.readings import Readings, read_lines
from perfsuite.device.probe.survey import take_survey
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target

TREES = Path(__file__).resolve().parent.parent / "trees"


def lay_out(name: str, root: Path) -> None:
    """Write the files of a tree below a folder."""
    for line in (TREES / f"{name}.txt").read_text("utf-8").splitlines():
        path, separator, value = line.partition(" =")
        if separator and not line.startswith("#"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"{value.removeprefix(' ')}\n")


def surveyed(root: Path) -> Readings:
    """Let this machine's shell read a tree."""
    return take_survey(open_target(Reach()), root=str(root))


def readings(*lines: str) -> Readings:
    """Return readings of lines ``name = text``."""
    return read_lines("\n".join("\t".join(line.split(" = ", 1)) for line in lines))
