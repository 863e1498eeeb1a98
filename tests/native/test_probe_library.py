"""The probe library as the wheel holds it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.probes import measure_ceilings

from .conftest import NATIVE, NativeToolchain, run

#: What is compiled on the device, and the headers.
SOURCES = ("bpf", "include", "src")


@pytest.fixture(scope="module")
def installed(toolchain: NativeToolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of native files, built and installed."""
    folder = tmp_path_factory.mktemp("native")
    toolchain.build(folder / "build")
    run([toolchain.cmake, "--install", str(folder / "build"), "--prefix", str(folder / "site")])
    return folder / "site" / "perfsuite" / "_native"


def test_install_holds_the_library_and_the_sources_for_the_device(installed: Path) -> None:
    """Beside the libraries lie all headers and the sources of what is compiled there, in the repository's folders."""
    sources = [path for part in SOURCES for path in (NATIVE / part).rglob("*") if path.is_file()]
    found = {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()}
    libraries = {path for path in found if path.suffix == ".so"}
    assert found - libraries == {path.relative_to(NATIVE) for path in sources}
    assert Path("libperfsuite_probe.so") in libraries


def test_probes_measure_this_machine(installed: Path) -> None:
    """The library and its ctypes declarations agree: every ceiling comes out positive."""
    library = ctypes.CDLL(str(installed / "libperfsuite_probe.so"))
    ceilings = measure_ceilings(library, n_threads=2, budget_ms=60, working_sets_bytes=(1 << 14, 1 << 20))
    assert ceilings.n_threads == 2
    assert [level.working_set_bytes for level in ceilings.bandwidths] == [1 << 14, 1 << 20]
    assert all(
        min(level.read_bytes_per_s, level.copy_bytes_per_s, level.triad_bytes_per_s) > 0
        for level in ceilings.bandwidths
    )
    assert min(ceilings.fp32_flops_per_s, ceilings.int8_flops_per_s, ceilings.dispatch_ns) > 0


def test_a_refusal_is_told_in_the_librarys_words(installed: Path) -> None:
    """A working set too small for its threads is a MeasurementError that says so."""
    library = ctypes.CDLL(str(installed / "libperfsuite_probe.so"))
    with pytest.raises(
        MeasurementError, match="bandwidth of 512 bytes with 2 threads: an argument is out of its range"
    ):
        measure_ceilings(library, n_threads=2, budget_ms=10, working_sets_bytes=(512, 1 << 20))
