"""The native part, compiled for 64-bit Arm and run under an emulator."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perfsuite.measure.engine import find_engine
from tests.arm_root import CMAKE_OPTIONS, EMULATOR, ArmRoot, missing_tool
from tests.native.conftest import NATIVE, NativeToolchain, run


@pytest.mark.long
@pytest.mark.usefixtures("requires_compiler")
def test_native_tests_pass_on_arm(toolchain: NativeToolchain, arm_root: ArmRoot, tmp_path: Path) -> None:
    """All native tests but that of the installed engine's operators pass: none is left out, none fails."""
    if obstacle := missing_tool(EMULATOR):
        pytest.skip(f"arm: {obstacle}")
    toolchain.build(
        tmp_path,
        PERFSUITE_BUILD_TESTS="ON",
        PERFSUITE_OPENCL_INCLUDE=str(arm_root.opencl_headers),
        PERFSUITE_ENGINE_INCLUDE=";".join(map(str, find_engine().include_dirs)),
        **CMAKE_OPTIONS,
    )
    output = run([toolchain.ctest, "--test-dir", str(tmp_path), "--output-on-failure", "--no-tests=error"])
    registered = re.findall(r"perfsuite_test\((test_\w+)", (NATIVE / "tests" / "CMakeLists.txt").read_text())
    by_recorder = {path.stem for path in (NATIVE / "tests").glob("test_recorder*.c")}
    expected = ({*registered} | by_recorder) - {"test_operator_run"}
    assert set(re.findall(r"(test_\w+) \.+ +Passed", output)) == expected
    assert "100% tests passed" in output
