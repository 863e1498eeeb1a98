"""llama.cpp's OpenCL backend on a board: what a bundle has of it, and on which device it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfsuite.errors import EngineError, NativeBuildError, OpenClError
from perfsuite.measure.engine import OPENCL_BACKEND, Engine
from perfsuite.measure.launches.own_kernels import FIX_THERE
from perfsuite.measure.launches.plan import DeviceListPlan
from perfsuite.measure.native import COMPATIBILITY_LAYER_LIBRARY, TRACING_LAYER_LIBRARY
from perfsuite.measure.opencl_backend import OpenClBackend, layer_environment, opencl_backend_of
from perfsuite.measure.opencl_platform import OpenClDevice, choose_device
from perfsuite.records.bundle import LAYERS

#: Runs a plan there with some variables, and returns its payload.
RunThere = Callable[[DeviceListPlan, Mapping[str, str]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledOpenCl:
    """What a board's bundle has for OpenCL."""

    #: The device's name, for whoever sets it up.
    name: str
    #: The bundle's folder, and the board's cache.
    bundle: Path
    cache_dir: Path
    #: The hashes of the files in a folder there, by name.
    digests: Callable[[Path], Mapping[str, str]]
    run: RunThere

    def tracing_layer(self) -> Path:
        """Return the layer that follows any program's commands; `NativeBuildError` where the bundle has none."""
        return self._layers()[0]

    def backend(self, engine: Engine, libraries: Path, platform: str | None) -> OpenClBackend:
        """Return the backend for an engine, which is in the folder with the suite's own library for that.

        Raises `EngineError` where there is no backend, `OpenClError` where there is no such device, or OpenCL's loader
        does not take layers; whatever `run` raises where there is no OpenCL at all.
        """
        tracing, compatibility, compatibility_id = self._layers()
        device = self._device(platform, tracing)  # without one no backend is of use
        digest = self.digests(libraries).get(OPENCL_BACKEND)
        if digest is None:
            raise EngineError(
                f"--backend=opencl: {libraries} holds no {OPENCL_BACKEND} for build {engine.build_id}; "
                f"run 'perfsuite devices setup {self.name} --opencl'"
            )
        return opencl_backend_of(
            device,
            library=libraries / OPENCL_BACKEND,
            library_id=digest[:40],
            compatibility_layer=compatibility if device.is_cpu else None,
            compatibility_id=compatibility_id if device.is_cpu else "",
            tracing_layer=tracing,
            settings={},  # the board's own loader and vendors
            cache_dir=self.cache_dir,
        )

    def _layers(self) -> tuple[Path, Path, str]:
        """Return the tracing layer, and the compatibility layer with its hash."""
        folder = self.bundle / LAYERS
        found = self.digests(folder)
        for name in (TRACING_LAYER_LIBRARY, COMPATIBILITY_LAYER_LIBRARY):
            if name not in found:
                raise NativeBuildError(
                    f"the OpenCL layer: {folder} holds no {name}; run 'perfsuite devices setup {self.name}'"
                )
        compatibility_id = found[COMPATIBILITY_LAYER_LIBRARY][:40]
        return folder / TRACING_LAYER_LIBRARY, folder / COMPATIBILITY_LAYER_LIBRARY, compatibility_id

    def _device(self, platform: str | None, layer: Path) -> OpenClDevice:
        """Choose the device in a process that has the layer, as all that use it will have."""
        plan = DeviceListPlan(cache_dir=str(self.cache_dir), layer=str(layer))
        told = self.run(plan, layer_environment(layer, self.cache_dir, profile_only=True))
        device = choose_device(platform, [OpenClDevice.from_plain(each) for each in told["devices"]], fix=FIX_THERE)
        if not told["has_layer"]:
            raise OpenClError(
                "the OpenCL layer: OpenCL's loader there does not read OPENCL_LAYERS, so nothing of llama.cpp's OpenCL "
                "backend can be followed; install one that does, such as Debian's ocl-icd-libopencl1 (2.3 or newer)"
            )
        return device
