"""llama.cpp's OpenCL backend on a device: its library and the environment of its processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import EngineError
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import (
    OpenClBackend,
    OpenClLayers,
    backend_library,
    find_opencl_backend,
    set_up_opencl,
)
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import DevicesPlan
from perfsuite.testing.workers import replace_workers

from ..synthetic_opencl_backend import opencl_backend, opencl_device, plain_engine, written

HOME = "perfsuite.measure.opencl_backend"
SETTINGS = {"OCL_ICD_VENDORS": "/vendors"}


@pytest.fixture
def own_engine(tmp_path: Path) -> Engine:
    written(tmp_path / "opencl-backend-abc" / "plain" / "libggml-opencl.so")
    return plain_engine(tmp_path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Any, ...]]:
    """Replace what looks for devices and builds layers; return what they were asked."""
    found: list[tuple[Any, ...]] = []
    device = {**opencl_device("gpu").to_plain()}

    def run(plan: DevicesPlan, *, extra_environment: Mapping[str, str]) -> dict[str, Any]:
        found.append((plan, dict(extra_environment)))
        return {"chosen": device, "devices": [opencl_device().to_plain(), device]}

    def layers(cache_dir: Path) -> OpenClLayers:
        found.append((cache_dir,))
        return OpenClLayers(tracing=written(tmp_path / "layer.so"), compatibility=written(tmp_path / "compat.so"))

    replace_workers(monkeypatch, run)
    monkeypatch.setattr("perfsuite.measure.opencl_backend.environment_opencl_vendors", lambda: "/own")
    monkeypatch.setattr(f"{HOME}.opencl_environment", lambda cache_dir, inherited: {**SETTINGS, "FROM": inherited})
    monkeypatch.setattr(f"{HOME}.find_opencl_layers", layers)
    return found


def test_the_device_is_the_one_that_a_process_has_chosen(
    own_engine: Engine, asked: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """A process with the drivers of the environment chooses by the platform's name, and sees what the engine will."""
    backend = set_up_opencl(own_engine, "plat", tmp_path)
    assert asked == [(DevicesPlan(platform="plat"), {**SETTINGS, "FROM": "/own"}), (tmp_path,)]
    assert backend.device == opencl_device("gpu")
    assert backend.tracing_layer == tmp_path / "layer.so"
    assert backend.library == tmp_path / "opencl-backend-abc" / "plain" / "libggml-opencl.so"
    assert backend.settings.items() >= {**SETTINGS, "FROM": "/own"}.items()


def test_a_missing_backend_builds_no_layer(asked: list[tuple[Any, ...]], tmp_path: Path) -> None:
    """It is asked for once there is a device: without one no backend is of use."""
    with pytest.raises(EngineError, match="--backend=opencl: neither"):
        set_up_opencl(plain_engine(tmp_path), None, tmp_path)
    assert [type(each[0]) for each in asked] == [DevicesPlan]


@pytest.mark.usefixtures("asked")
def test_a_layer_of_ones_own_stays_beside_ours(
    own_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCL_LAYERS", "/theirs.so")
    gpu = set_up_opencl(own_engine, "plat", tmp_path)
    processor = replace(gpu, compatibility_layer=Path("/compat.so"))
    assert gpu.environment()["OPENCL_LAYERS"] == "/theirs.so"
    assert processor.environment()["OPENCL_LAYERS"] == "/theirs.so:/compat.so"
    assert processor.environment(tmp_path)["OPENCL_LAYERS"] == f"/theirs.so:/compat.so:{tmp_path / 'layer.so'}"
    assert gpu.fingerprint["opencl_own_layers"] == "/theirs.so"


KERNELS = "GGML_OPENCL_KERNEL_CACHE_DIR"


def made(folder: Path, build_id: str = "abc") -> Path:
    return written(folder / "cache" / f"opencl-backend-{build_id}" / "plain" / "libggml-opencl.so")


def found(engine: Engine, folder: Path, device: OpenClDevice) -> OpenClBackend:
    return find_opencl_backend(
        engine,
        device,
        compatibility_layer=written(folder / "compat.so"),
        tracing_layer=written(folder / "layer.so"),
        settings={"OCL_ICD_VENDORS": "/vendors"},
        cache_dir=folder / "cache",
    )


def test_a_processor_needs_the_compatibility_layer(tmp_path: Path) -> None:
    """On a processor the layer is there and told, and the product that needs wide sub-groups is switched off.

    A GPU has neither; a process that is not followed has no other layer.
    """
    library = made(tmp_path)
    backend = found(plain_engine(tmp_path), tmp_path, opencl_device())
    assert (backend.library, backend.compatibility_layer) == (library, tmp_path / "compat.so")
    assert backend.fingerprint == {
        "opencl_platform": "A platform, OpenCL 3.0",
        "opencl_device": "A device",
        "opencl_driver": "1.2",
        "opencl_compatibility_layer": "on",
    }
    assert backend.settings["GGML_OPENCL_MM_F16_FORCE_L4"] == "1"
    assert backend.settings["GGML_OPENCL_PLATFORM"] == "A platform"
    assert backend.settings["OCL_ICD_VENDORS"] == "/vendors"
    assert backend.environment() == {**backend.settings, "OPENCL_LAYERS": str(tmp_path / "compat.so")}
    gpu = found(plain_engine(tmp_path), tmp_path, opencl_device("gpu"))
    assert gpu.compatibility_layer is None
    assert gpu.fingerprint["opencl_compatibility_layer"] == "off"
    assert not {"GGML_OPENCL_MM_F16_FORCE_L4", "OPENCL_LAYERS"} & gpu.environment().keys()


@pytest.mark.parametrize(("profile_only", "mode"), [(False, "record"), (True, "profile")])
def test_with_a_log_both_layers_are_loaded(profile_only: bool, mode: str, tmp_path: Path) -> None:
    environment = opencl_backend(tmp_path).environment(tmp_path, profile_only=profile_only)
    assert environment["OPENCL_LAYERS"] == f"{tmp_path / 'compat.so'}:{tmp_path / 'layer.so'}"
    assert environment["PERFSUITE_OPENCL_LOG"] == str(tmp_path)
    assert environment["PERFSUITE_OPENCL_LAYER_MODE"] == mode
    assert environment["GGML_OPENCL_PLATFORM"] == "A platform"
    gpu = opencl_backend(tmp_path, "gpu").environment(tmp_path)
    assert gpu["OPENCL_LAYERS"] == str(tmp_path / "layer.so")


def test_an_engine_that_was_built_with_opencl_needs_no_other_library(tmp_path: Path) -> None:
    """The backend beside the engine goes before one that was made for it, whatever its version."""
    made(tmp_path)
    engine = plain_engine(tmp_path)
    written(engine.library_dir / "libggml-opencl.so.0")
    assert backend_library(engine, tmp_path / "cache") is None


def test_compiled_kernels_are_kept_by_what_made_them(tmp_path: Path) -> None:
    library = made(tmp_path)
    device = opencl_device()
    folders = [found(plain_engine(tmp_path), tmp_path, device).settings[KERNELS] for _ in range(2)]
    assert folders[0] == folders[1]
    folders += [
        found(plain_engine(tmp_path), tmp_path, each).settings[KERNELS]
        for each in (opencl_device("gpu"), opencl_device(driver_version="1.3"), replace(device, device_name="Another"))
    ]
    for changed in (tmp_path / "compat.so", library):
        changed.write_text("changed")
        folders.append(found(plain_engine(tmp_path), tmp_path, device).settings[KERNELS])
    assert len(set(folders[1:])) == 6
    assert {Path(each).parent for each in folders} == {tmp_path / "cache" / "opencl-kernels"}
