"""The native tests, under the compiler's sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import NativeToolchain, run


@pytest.mark.parametrize("sanitize", ["address,undefined", "thread"])
def test_native_tests_pass_under_sanitizers(toolchain: NativeToolchain, tmp_path: Path, sanitize: str) -> None:
    """The native tests pass with every access, every undefined operation and every race reported as an error."""
    if not _has_sanitizer(toolchain, tmp_path, sanitize):
        pytest.skip(f"programs built with -fsanitize={sanitize} do not run here")
    build = tmp_path / "build"
    toolchain.build(build, PERFSUITE_BUILD_TESTS="ON", PERFSUITE_SANITIZE=sanitize)
    output = run([toolchain.ctest, "--test-dir", str(build), "--output-on-failure", "--no-tests=error"])
    assert "100% tests passed" in output


def _has_sanitizer(toolchain: NativeToolchain, folder: Path, sanitize: str) -> bool:
    source, program = folder / "empty.c", folder / "empty"
    source.write_text("int main(void) { return 0; }\n")
    compile_it = [toolchain.compiler, f"-fsanitize={sanitize}", str(source), "-o", str(program)]
    return all(
        subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
        for command in (compile_it, [str(program)])
    )
