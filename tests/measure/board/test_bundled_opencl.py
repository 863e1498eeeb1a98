"""A board finds llama.cpp's OpenCL backend in its bundle, and names what it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import EngineError, MeasurementError, OpenClError, PerfsuiteError
from perfsuite.measure.board.bundled_opencl import BundledOpenCl
from perfsuite.measure.board.remote_board import RemoteBoard
from perfsuite.measure.engine import Engine
from perfsuite.measure.launch import record_payload
from perfsuite.measure.launches.plan import DeviceListPlan
from perfsuite.measure.opencl_backend import OpenClBackend, find_opencl_backend
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import LlamaPlan

from ...synthetic_opencl_backend import opencl_device, opencl_plan, plain_engine, written
from .conftest import BoardHome

ENGINE = Engine(library_dir=Path("/b/engine"), include_dirs=(), build_id="0123456789abcdef")
FILES = {
    "/b/lib/libggml-opencl.so": "1" * 64,
    "/b/layers/libperfsuite_cl_layer.so": "2" * 64,
    "/b/layers/libperfsuite_cl_compat.so": "3" * 64,
}


@dataclass(kw_only=True)
class Bundled:
    """A board with a bundle, as far as it is asked for OpenCL."""

    devices: tuple[OpenClDevice, ...]
    has_layer: bool = True
    files: Mapping[str, str] = field(default_factory=lambda: FILES)
    asked: list[tuple[DeviceListPlan, Mapping[str, str]]] = field(default_factory=list)

    def found(self) -> BundledOpenCl:
        return BundledOpenCl(
            name="rubikpi", bundle=Path("/b"), cache_dir=Path("/c"), digests=self._digests, run=self._run
        )

    def backend(self, platform: str | None = None) -> OpenClBackend:
        return self.found().backend(ENGINE, Path("/b/lib"), platform)

    def _digests(self, folder: Path) -> dict[str, str]:
        return {Path(path).name: digest for path, digest in self.files.items() if Path(path).parent == folder}

    def _run(self, plan: DeviceListPlan, environment: Mapping[str, str]) -> dict[str, Any]:
        self.asked.append((plan, environment))
        return {"devices": [each.to_plain() for each in self.devices], "has_layer": self.has_layer}


def test_a_gpu_is_taken_first_and_needs_no_layer_of_its_own() -> None:
    """The paths are those of the bundle; the devices are listed by a process that has the tracing layer."""
    bundled = Bundled(devices=(opencl_device("cpu"), replace(opencl_device("gpu"), device_index=1)))
    found = bundled.backend("a platform")
    assert (found.device.type, found.compatibility_layer, found.compatibility_id) == ("gpu", None, "")
    assert (found.library, found.library_id) == (Path("/b/lib/libggml-opencl.so"), "1" * 40)
    assert str(found.tracing_layer) == bundled.asked[0][0].layer == bundled.asked[0][1]["OPENCL_LAYERS"]


def test_a_processor_is_set_up_as_here(tmp_path: Path) -> None:
    """What its processes are started with has the names and, except the places, the values of this machine's."""
    found = Bundled(devices=(opencl_device("cpu"),)).backend("a platform")
    assert found.compatibility_layer == Path("/b/layers/libperfsuite_cl_compat.so")
    written(tmp_path / f"opencl-backend-{ENGINE.build_id}" / "plain" / "libggml-opencl.so")
    here = find_opencl_backend(
        replace(plain_engine(tmp_path), build_id=ENGINE.build_id),
        opencl_device("cpu"),
        compatibility_layer=written(tmp_path / "compat.so"),
        tracing_layer=written(tmp_path / "layer.so"),
        settings={},
        cache_dir=tmp_path,
    )
    assert found.fingerprint == here.fingerprint
    places = {"GGML_OPENCL_KERNEL_CACHE_DIR", "OPENCL_LAYERS"}
    there, own = (each.environment(Path("/log")) for each in (found, here))
    assert there.keys() == own.keys()
    assert {name: there[name] for name in there.keys() - places} == {name: own[name] for name in own.keys() - places}
    assert there["OPENCL_LAYERS"].split(":") == [str(found.compatibility_layer), str(found.tracing_layer)]
    assert there["GGML_OPENCL_KERNEL_CACHE_DIR"].startswith("/c/opencl-kernels/")


def without(name: str) -> dict[str, str]:
    return {path: digest for path, digest in FILES.items() if name not in path}


@pytest.mark.parametrize(
    ("there", "error", "told"),
    [
        (
            Bundled(devices=(opencl_device("gpu"),), files=without("ggml")),
            EngineError,
            r"/b/lib holds no libggml-opencl\.so for build .*; run 'perfsuite devices setup rubikpi --opencl'",
        ),
        (
            Bundled(devices=(opencl_device("gpu"),), has_layer=False),
            OpenClError,
            "loader there does not read OPENCL_LAYERS, .*; install one that does, such as Debian's ocl-icd-libopencl1",
        ),
    ],
)
def test_what_is_missing_is_named_with_the_remedy(there: Bundled, error: type[PerfsuiteError], told: str) -> None:
    with pytest.raises(error, match=told):
        there.backend()


@pytest.fixture
def home(bundled: BoardHome) -> BoardHome:
    """Return a board with a bundle, whose files of OpenCL are stand-ins that nobody loads."""
    for path in FILES:
        written(bundled.bundle / Path(path).relative_to("/b"))
    return bundled


def test_the_program_lists_the_devices_itself(home: BoardHome, board: RemoteBoard, tmp_path: Path) -> None:
    home.install(before=f"export OCL_ICD_VENDORS={tmp_path}")
    told = r"^board: OpenCL: .*install the driver of the device's vendor"
    with pytest.raises(PerfsuiteError, match=told):
        board.instruments.opencl_backend(board.facts().engine, None)
    layer = board.instruments.tracing_layer()
    assert layer.is_file()
    assert layer.name == "libperfsuite_cl_layer.so"


@pytest.mark.parametrize("has_python", [True, False])
def test_a_kernel_of_the_backend_that_does_not_compile_is_named(
    home: BoardHome, board: RemoteBoard, tmp_path: Path, *, has_python: bool
) -> None:
    complaint = "llama.cpp's last complaint: ggml_opencl: kernel compile error (err=-11) building mul_mv: no half"
    plan: LlamaPlan = opencl_plan(tmp_path)
    home.install(f'echo "{complaint}" >&2; exit 1')
    where = "" if has_python else "board: "
    told = (
        f"^{where}libggml-opencl.so: a kernel of llama.cpp's OpenCL backend does not compile"
        ".*mul_mv: no half.*update the device's OpenCL driver"
    )
    with pytest.raises(MeasurementError, match=told):
        record_payload(plan, None, f"{complaint}\nmore of it\n") if has_python else board.run(plan)
