"""The layers beneath a program's OpenCL: where they are, and the environment that makes a loader take them in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfsuite.measure.native import COMPATIBILITY_LAYER_LIBRARY, TRACING_LAYER_LIBRARY, find_opencl_layer


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClLayers:
    """The two layers, built for this machine."""

    #: Follows every command; ``native/include/perfsuite/cl_layer.h``.
    tracing: Path
    #: Makes llama.cpp's backend take a processor.
    compatibility: Path


def find_opencl_layers(cache_dir: Path) -> OpenClLayers:
    """Find the layers of the wheel, or build them from source into the cache; neither is loaded.

    Raises `NativeBuildError` where a layer does not build, or OpenCL's headers are not installed.
    """
    return OpenClLayers(
        tracing=find_opencl_layer(TRACING_LAYER_LIBRARY, cache_dir),
        compatibility=find_opencl_layer(COMPATIBILITY_LAYER_LIBRARY, cache_dir),
    )


def layer_environment(
    layer: Path, log_dir: Path, *, inherited: str | None = None, profile_only: bool = False
) -> dict[str, str]:
    """Return the variables of a process that is to run under the tracing layer.

    Each process that uses OpenCL writes a log of its own to `log_dir`, which exists. `inherited` is ``OPENCL_LAYERS``
    as it was: the layers in it stay, above ours. With `profile_only` profiling is switched on, and nothing is recorded.
    """
    return {
        "OPENCL_LAYERS": ":".join(part for part in (inherited, str(layer)) if part),
        "PERFSUITE_OPENCL_LOG": str(log_dir.absolute()),
        "PERFSUITE_OPENCL_LAYER_MODE": "profile" if profile_only else "record",
    }
