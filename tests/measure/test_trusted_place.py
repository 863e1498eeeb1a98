"""Who can write where root's programs lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfsuite.measure.trusted_place import others_can_write


def test_who_else_can_write_is_found(tmp_path: Path) -> None:
    """A shared folder counts wherever it is above a path, but one with the sticky bit does not."""
    if os.geteuid() != 0:
        pytest.skip("it takes root to have folders of root's own")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert others_can_write(inner) is None
    (tmp_path / "a").chmod(0o775)
    assert others_can_write(inner) == tmp_path / "a"
    (tmp_path / "a").chmod(0o1777)
    assert others_can_write(inner) is None
