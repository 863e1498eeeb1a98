"""A made-up OpenCL device with llama.cpp's backend for it, and a plan of a process that runs there."""

from __future__ import annotations

from pathlib import Path

from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import LlamaPlan

#: What a worker sends of competition where there was none, and where there was much.
QUIET = {"wall_ns": 10**9, "running_ns": 2 * 10**9, "waiting_ns": 0, "steal_ratio": 0.0, "others_ratio": 0.0}
CONTENDED = {**QUIET, "others_ratio": 0.4}


def opencl_device(kind: str = "cpu", *, driver_version: str = "1.2") -> OpenClDevice:
    return OpenClDevice(
        platform_index=0,
        device_index=0,
        platform_name="A platform",
        platform_version="OpenCL 3.0",
        device_name="A device",
        device_version="OpenCL 3.0",
        driver_version=driver_version,
        type=kind,
        compute_units=2,
        global_memory_bytes=2**30,
        local_memory_bytes=2**15,
    )


def opencl_backend(folder: Path, kind: str = "cpu", *, driver_version: str = "1.2") -> OpenClBackend:
    """Return a backend whose libraries are in a folder, made where they are not there yet."""
    compatibility = written(folder / "compat.so") if kind == "cpu" else None
    return OpenClBackend(
        library=written(folder / "libggml-opencl.so"),
        device=opencl_device(kind, driver_version=driver_version),
        compatibility_layer=compatibility,
        tracing_layer=written(folder / "layer.so"),
        settings={"GGML_OPENCL_PLATFORM": "A platform"},
    )


def plain_engine(folder: Path) -> Engine:
    written(folder / "engine" / "libllama.so")
    return Engine(library_dir=folder / "engine", include_dirs=(folder / "include",), build_id="abc")


def written(path: Path) -> Path:
    """Return a file that holds its own name, where it held nothing before."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    return path


def opencl_plan(folder: Path) -> LlamaPlan:
    return LlamaPlan(
        gguf_path=str(written(folder / "weights.gguf")),
        library_dir=str(folder),
        engine_build_id="1",
        cache_dir=str(folder / "cache"),
        n_threads=2,
        n_prompt=1,
        n_gen=2,
        recorder="none",
        n_gpu_layers=999,
        backend_library=str(folder / "libggml-opencl.so"),
    )
