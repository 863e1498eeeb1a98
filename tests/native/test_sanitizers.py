"""The native tests, under the compiler's sanitizers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perfsuite.errors import EngineError
from perfsuite.measure.engine import Engine, find_engine

from .conftest import NativeToolchain, run


@pytest.mark.long
@pytest.mark.parametrize("sanitize", ["address,undefined", "thread"])
def test_native_tests_pass_under_sanitizers(toolchain: NativeToolchain, tmp_path: Path, sanitize: str) -> None:
    """The native tests pass with every access, every undefined operation and every race reported as an error."""
    if not _has_sanitizer(toolchain, tmp_path, sanitize):
        pytest.skip(f"programs built with -fsanitize={sanitize} do not run here")
    build, engine = tmp_path / "build", _engine()
    toolchain.build(
        build,
        PERFSUITE_BUILD_TESTS="ON",
        PERFSUITE_SANITIZE=sanitize,
        CMAKE_CXX_FLAGS_RELEASE="-O1",  # compiles in half the time
        PERFSUITE_ENGINE_INCLUDE=";".join(map(str, engine.include_dirs)) if engine else "",
        PERFSUITE_ENGINE_LIBRARY_DIR=str(engine.library_dir) if engine else "",
    )
    output = run([toolchain.ctest, "--test-dir", str(build), "--output-on-failure", "--no-tests=error"])
    assert "100% tests passed" in output
    assert "test_ring" in output
    assert "test_live" in output
    assert "test_entry" in output
    assert "test_malformed" in output
    for name in ("test_recorder", "test_phase_tracer", "test_operator_run"):
        assert (name in output) == bool(engine)


def _engine() -> Engine | None:
    """Return the llama.cpp whose headers and operators are tested with, if one is installed."""
    try:
        return find_engine()
    except EngineError:
        return None


def _has_sanitizer(toolchain: NativeToolchain, folder: Path, sanitize: str) -> bool:
    source, program = folder / "empty.c", folder / "empty"
    source.write_text("int main(void) { return 0; }\n")
    compile_it = [toolchain.compiler, f"-fsanitize={sanitize}", str(source), "-o", str(program)]
    return all(
        subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
        for command in (compile_it, [str(program)])
    )
