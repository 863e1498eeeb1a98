"""What the tests on Arm need; each fixture skips with the one thing that is missing."""

from __future__ import annotations

import pytest

from tests.arm_root import COMPILER, ArmRoot, find_arm_root, missing_tool
from tests.native.conftest import toolchain as toolchain


@pytest.fixture(scope="session")
def requires_compiler() -> None:
    """Skip where nothing can be compiled for arm64."""
    if obstacle := missing_tool(COMPILER):
        pytest.skip(f"arm: {obstacle}")


@pytest.fixture(scope="session")
def arm_root() -> ArmRoot:
    """Return Debian for arm64, or skip where there is none."""
    found = find_arm_root()
    if isinstance(found, str):
        pytest.skip(found)
    return found
