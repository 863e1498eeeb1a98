"""Runs of the plugin on a device whose workers are replaced, and commands that keep what they make apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_device import fake_device, fake_opencl, real_outputs, runs, without_engines

__all__ = ["fake_device", "fake_opencl", "real_outputs", "runs", "without_engines"]


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Replace the user's cache by a temporary folder, and the weights by a file that need not be there."""
    materialize = "perfsuite.measure.board.local_board.materialize"
    monkeypatch.setattr(materialize, lambda weights, cache_dir: tmp_path / "weights.gguf")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return tmp_path / "cache"
