"""llama.cpp's OpenCL backend on one device: its library, and the environment that its process is started with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfsuite.errors import EngineError
from perfsuite.measure import launch
from perfsuite.measure.engine import OPENCL_BACKEND, Engine, library_build_id
from perfsuite.measure.environment import environment_opencl_layers, environment_opencl_vendors
from perfsuite.measure.kernel_runtime import opencl_environment
from perfsuite.measure.native import COMPATIBILITY_LAYER_LIBRARY, TRACING_LAYER_LIBRARY, find_opencl_layer
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import DevicesPlan

#: What the loader brings in, the uppermost first.
_LAYERS = "OPENCL_LAYERS"


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
        _LAYERS: ":".join(part for part in (inherited, str(layer)) if part),
        "PERFSUITE_OPENCL_LOG": str(log_dir.absolute()),
        "PERFSUITE_OPENCL_LAYER_MODE": "profile" if profile_only else "record",
    }


#: Its x8 kernel of products with F16 copies no more of a row to local memory than a sub-group has items, and reads 64
#: of it: on devices with smaller sub-groups the rest is whatever lay there (kernels/mul_mv_f16_f32_l4.cl). The backend
#: has this switch for another of its kernels.
_WITHOUT_X8 = {"GGML_OPENCL_MM_F16_FORCE_L4": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClBackend:
    """The backend as one device needs it."""

    #: The backend in a library of its own; `None` where the engine was built with it.
    library: Path | None
    device: OpenClDevice
    #: The layer that makes the backend take a processor; `None` on devices that it takes by itself.
    compatibility_layer: Path | None
    #: The layer that follows its commands.
    tracing_layer: Path
    #: For the processes that it runs in, but for the layers.
    settings: Mapping[str, str]
    #: Build ids of the library and of the compatibility layer, which may lie on another machine; "" without one.
    library_id: str = ""
    compatibility_id: str = ""

    @property
    def fingerprint(self) -> dict[str, str]:
        """What must be equal for two runs to be comparable."""
        device = self.device
        return {
            "opencl_platform": f"{device.platform_name}, {device.platform_version}",
            "opencl_device": device.device_name,
            "opencl_driver": device.driver_version,
            "opencl_compatibility_layer": "on" if self.compatibility_layer else "off",
            **({"opencl_own_layers": own} if (own := self.settings.get(_LAYERS)) else {}),
        }

    def environment(self, log_dir: Path | None = None, *, profile_only: bool = False) -> dict[str, str]:
        """Return the environment of a process: without the tracing layer, or with its log in a directory."""
        inherited = ":".join(filter(None, (self.settings.get(_LAYERS), str(self.compatibility_layer or ""))))
        if log_dir is None:
            return {**self.settings, **({_LAYERS: inherited} if inherited else {})}
        layered = layer_environment(self.tracing_layer, log_dir, inherited=inherited, profile_only=profile_only)
        return {**self.settings, **layered}


def find_opencl_backend(
    engine: Engine,
    device: OpenClDevice,
    *,
    compatibility_layer: Path,
    tracing_layer: Path,
    settings: Mapping[str, str],
    cache_dir: Path,
) -> OpenClBackend:
    """Find the backend that the engine was built with, or the one that was made for it.

    `compatibility_layer` is what a processor needs, and left out on other devices; `settings` are the variables that
    make the device visible; `cache_dir` is where ``tools/opencl_backend.sh`` puts what it makes, and where compiled
    kernels are kept.

    Raises `EngineError` where there is no OpenCL backend for this engine.
    """
    library = backend_library(engine, cache_dir)
    layer = compatibility_layer if device.is_cpu else None
    return opencl_backend_of(
        device,
        library=library,
        library_id=_build_id(library),
        compatibility_layer=layer,
        compatibility_id=_build_id(layer),
        tracing_layer=tracing_layer,
        settings=settings,
        cache_dir=cache_dir,
    )


def opencl_backend_of(
    device: OpenClDevice,
    *,
    library: Path | None,
    library_id: str,
    compatibility_layer: Path | None,
    compatibility_id: str,
    tracing_layer: Path,
    settings: Mapping[str, str],
    cache_dir: Path,
) -> OpenClBackend:
    """Return a backend whose files were found, wherever they lie, with what its processes are started with."""
    kernels = cache_dir / "opencl-kernels" / _kernels_key((library_id, compatibility_id), device)
    return OpenClBackend(
        library=library,
        device=device,
        compatibility_layer=compatibility_layer,
        tracing_layer=tracing_layer,
        library_id=library_id,
        compatibility_id=compatibility_id,
        settings={
            **settings,
            "GGML_OPENCL_PLATFORM": device.platform_name,
            "GGML_OPENCL_KERNEL_CACHE_DIR": str(kernels),
            **(_WITHOUT_X8 if device.is_cpu else {}),
        },
    )


def backend_library(engine: Engine, cache_dir: Path) -> Path | None:
    """Return the backend's own library for an engine, None where the engine was built with it; or raise."""
    if any(engine.library_dir.glob(f"{OPENCL_BACKEND}*")):
        return None
    made = cache_dir / f"opencl-backend-{engine.build_id}" / "plain" / OPENCL_BACKEND
    if not made.exists():
        raise EngineError(
            f"--backend=opencl: neither {engine.library_dir} nor {made.parent} holds {OPENCL_BACKEND}; run 'make "
            "perf-opencl' or tools/opencl_backend.sh, or point LLAMA_CPP_LIB_PATH to a build with -DGGML_OPENCL=ON"
        )
    return made


def _kernels_key(build_ids: Sequence[str], device: OpenClDevice) -> str:
    """Name the folder of compiled kernels: the backend's own key does not see what a layer makes of a source."""
    parts = [each for each in build_ids if each]
    parts += [device.platform_version, device.device_name, device.driver_version]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _build_id(library: Path | None) -> str:
    return "" if library is None else library_build_id(library)


def set_up_opencl(engine: Engine, platform: str | None, cache_dir: Path) -> OpenClBackend:
    """Find everything that the engine needs to run on an OpenCL device.

    Raises `PerfsuiteError` where there is no such platform, no backend for this engine, or a layer does not build.
    """
    own = environment_opencl_layers()
    settings = {
        **opencl_environment(cache_dir, inherited=environment_opencl_vendors()),
        **({_LAYERS: own} if own else {}),
    }
    chosen = launch.run_worker(DevicesPlan(platform=platform), extra_environment=settings)["chosen"]
    backend_library(engine, cache_dir)  # before a layer is built
    layers = find_opencl_layers(cache_dir)
    return find_opencl_backend(
        engine,
        OpenClDevice.from_plain(chosen),
        compatibility_layer=layers.compatibility,
        tracing_layer=layers.tracing,
        settings=settings,
        cache_dir=cache_dir,
    )
