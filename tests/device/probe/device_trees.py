"""What the survey reads in the trees of boards, and readings of a few lines."""

from __future__ import annotations

from pathlib import Path

from perfsuite.device.probe.readings import Readings, read_lines, take_survey
from perfsuite.device.reach import Reach
from perfsuite.device.target.opening import open_target
from tests.sys_trees import plant


def surveyed(tree: str, root: Path) -> Readings:
    """Let this machine's shell read a board's tree, made below a folder."""
    return take_survey(open_target(Reach()), root=str(plant(tree, root)))


def readings(*lines: str) -> Readings:
    """Return readings of lines ``name = text``."""
    return read_lines("\n".join("\t".join(line.split(" = ", 1)) for line in lines))
