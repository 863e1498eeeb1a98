"""The native part, compiled for 64-bit Arm and run under an emulator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfsuite.measure.engine import find_engine
from tests.arm_root import CMAKE_OPTIONS, ArmRoot
from tests.native.conftest import NATIVE, NativeToolchain, run


@pytest.mark.long
@pytest.mark.usefixtures("requires_emulator")
def test_native_tests_pass_on_arm(
    toolchain: NativeToolchain, arm_root: ArmRoot, arm_bundle: Path, tmp_path: Path
) -> None:
    """Every native test passes, those of the recorder, of the worker and of llama.cpp's operators among them."""
    toolchain.build(
        tmp_path,
        PERFSUITE_BUILD_TESTS="ON",
        PERFSUITE_OPENCL_INCLUDE=str(arm_root.opencl_headers),
        PERFSUITE_ENGINE_INCLUDE=";".join(map(str, find_engine().include_dirs)),
        PERFSUITE_ENGINE_LIBRARY_DIR=str(arm_bundle / "engine"),
        **CMAKE_OPTIONS,
    )
    output = run([toolchain.ctest, "--test-dir", str(tmp_path), "--output-on-failure", "--no-tests=error"])
    assert set(re.findall(r"(test_\w+) \.+ +Passed", output)) == {
        path.stem for path in (NATIVE / "tests").glob("test_*.c*")
    }
    assert "100% tests passed" in output
