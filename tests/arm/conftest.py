"""What the tests on Arm need; each fixture skips with the one thing that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfsuite.cli.kept_folders import user_cache
from perfsuite.measure.bundle.making import BundleOrder, make_bundle
from perfsuite.measure.bundle.targets import find_target
from tests.arm_root import COMPILER, EMULATOR, ArmRoot, find_arm_root, missing_tool
from tests.native.conftest import toolchain as toolchain


@pytest.fixture(scope="session")
def arm_root() -> ArmRoot:
    """Return Debian for arm64, or skip where there is none."""
    found = find_arm_root()
    if isinstance(found, str):
        pytest.skip(f"arm: {found}")
    return found


@pytest.fixture(scope="session")
def arm_bundle() -> Path:
    """Return llama.cpp, its recorders and the worker for arm64; ``make long-needs`` has compiled the long part."""
    if obstacle := missing_tool(COMPILER):
        pytest.skip(f"arm: {obstacle}")
    target = find_target("aarch64-linux-gnu")
    order = BundleOrder(target=target, processor=target.processor(None))
    return make_bundle(order, user_cache(), lambda *_: None).folder


@pytest.fixture(scope="session")
def requires_emulator() -> None:
    """Skip where no program for arm64 can be run."""
    if obstacle := missing_tool(EMULATOR):
        pytest.skip(f"arm: {obstacle}")
