"""Sets up llama.cpp's OpenCL backend: the device, the backend made for the engine, and the layers beneath it."""

from __future__ import annotations

from pathlib import Path

from perfsuite.measure import launch
from perfsuite.measure.engine import Engine
from perfsuite.measure.kernel_runtime import opencl_environment
from perfsuite.measure.opencl_backend import OpenClBackend, backend_library, find_opencl_backend, find_opencl_layers
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import DevicesPlan


def set_up_opencl(engine: Engine, platform: str | None, cache_dir: Path) -> OpenClBackend:
    """Find everything that the engine needs to run on an OpenCL device.

    Raises `PerfsuiteError` where there is no such platform, no backend for this engine, or a layer does not build.
    """
    backend_library(engine, cache_dir)  # before a process is started to look for devices
    settings = opencl_environment(cache_dir, inherited=launch.environment_opencl_vendors())
    chosen = launch.run_worker(DevicesPlan(platform=platform), extra_environment=settings)["chosen"]
    layers = find_opencl_layers(cache_dir)
    return find_opencl_backend(
        engine,
        OpenClDevice.from_plain(chosen),
        compatibility_layer=layers.compatibility,
        tracing_layer=layers.tracing,
        settings=settings,
        cache_dir=cache_dir,
    )
