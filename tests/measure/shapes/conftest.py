"""The setup of a process that measures shapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.meters import ShapeSetup


@pytest.fixture
def setup(tmp_path: Path) -> ShapeSetup:
    return ShapeSetup(plan=ShapesPlan(subject="tiled", n_threads=1, log_dir=str(tmp_path)), environment={})
