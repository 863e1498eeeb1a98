"""The mark of a process is read by another one, also after its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from perfsuite.measure.shapes.progress import ProgressMark

CHILD = """
import os, sys
from pathlib import Path
from perfsuite.measure.shapes.progress import ProgressMark
mark = ProgressMark(Path(sys.argv[1]))
for place in (0, 4, 2):
    mark.step(place)
os.abort()
"""


def test_a_mark_outlives_its_process(tmp_path: Path) -> None:
    """A process that was killed has said at which case it was, and in which step."""
    mark = ProgressMark(tmp_path / "mark")
    assert mark.read() == (0, 0)
    subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / "mark")], check=False, timeout=60)
    assert mark.read() == (3, 2)
    mark.close()
