"""Workers with a fake bench."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.meters import ShapeSetup

from ..conftest import Child

FAKE_BENCH = Path(__file__).parent / "fake_bench.py"


@pytest.fixture
def setup(tmp_path: Path) -> ShapeSetup:
    return ShapeSetup(plan=ShapesPlan(subject="tiled", n_threads=1, log_dir=str(tmp_path)), environment={})


@pytest.fixture
def fake_worker(child: Child) -> None:
    child(f'exec {sys.executable} {FAKE_BENCH} "$plan" "$record"')
