"""Runs of the plugin on a device whose workers are replaced, and commands that keep what they make apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_device import fake_device as fake_device
from tests.fake_device import fake_opencl as fake_opencl
from tests.fake_device import real_outputs as real_outputs
from tests.fake_device import runs as runs
from tests.fake_device import without_engines as without_engines
from tests.measure.conftest import engine as engine
from tests.measure.conftest import engine_cache as engine_cache
from tests.measure.conftest import routed_plan as routed_plan
from tests.measure.conftest import small_plan as small_plan


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Replace the user's cache by a temporary folder, and the weights by a file that need not be there."""
    materialize = "perfsuite.measure.board.local_board.materialize"
    monkeypatch.setattr(materialize, lambda weights, cache_dir: tmp_path / "weights.gguf")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return tmp_path / "cache"
