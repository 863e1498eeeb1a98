"""What the suite on this machine says of itself, for a doctor of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from perfsuite.device.doctor.gathering import Installed, SuiteState
from perfsuite.errors import PerfsuiteError

#: Two layers of the smallest architecture, all of them on the device.
_SMALL_MODEL, _ALL_LAYERS = "smollm2-135m-l2-q8_0", 99

#: A driver compiles the backend's hundred kernels in minutes the first time; they are kept.
_BACKEND_LIMIT_S = 150.0

_NOT_ASKED = "not looked at"


def own_account() -> Installed:
    """Return the version of the suite here, and which llama.cpp it would measure."""
    from perfsuite import __version__
    from perfsuite.measure.environment import environment_engine
    from perfsuite.measure.plan import SCHEMA

    try:
        engine, problem = environment_engine().build_id, None
    except PerfsuiteError as error:
        engine, problem = None, str(error)
    return Installed(suite_version=__version__, plan_schema=SCHEMA, engine_build_id=engine, engine_problem=problem)


def own_state(opencl_platform: str | None) -> SuiteState:
    """Return what a doctor of this machine looks at.

    While somebody may measure here, no OpenCL driver and no eBPF helper is started, which would disturb him.
    """
    from perfsuite.cli.kept_folders import user_cache
    from perfsuite.measure.board.local_lock import lock_holder
    from perfsuite.measure.ebpf_helper import ebpf_obstacle

    cache_dir = user_cache()
    lock = lock_holder()
    is_busy = lock is not None
    device, opencl_problem = (None, None) if is_busy else _opencl(opencl_platform, cache_dir)
    return SuiteState(
        installed=own_account(),
        lock=lock,
        restore_file=_restore_file(cache_dir),
        cache_dir=str(cache_dir),
        cache_free_bytes=_free_bytes(cache_dir),
        opencl_device=device,
        opencl_problem=opencl_problem,
        ebpf_problem=None if is_busy else ebpf_obstacle(cache_dir),
        backend_problem=_NOT_ASKED if is_busy or opencl_platform is None else _backend(opencl_platform, cache_dir),
        is_busy=is_busy,
    )


def _restore_file(cache_dir: Path) -> str | None:
    from perfsuite.device.governors import FILE_NAME, STATE_FOLDER

    path = cache_dir / STATE_FOLDER / FILE_NAME
    return str(path) if path.exists() else None


def _free_bytes(folder: Path) -> int:
    there = next(each for each in (folder, *folder.parents) if each.is_dir())
    return shutil.disk_usage(there).free


def _opencl(wanted: str | None, cache_dir: Path) -> tuple[str | None, str | None]:
    """Return the OpenCL device that would be measured, or why there is none; asked in a process of its own."""
    from perfsuite.measure.environment import environment_opencl_vendors
    from perfsuite.measure.kernel_runtime import opencl_environment
    from perfsuite.measure.launch import run_worker
    from perfsuite.measure.opencl_platform import OpenClDevice
    from perfsuite.measure.plan import DevicesPlan

    try:
        environment = opencl_environment(cache_dir, inherited=environment_opencl_vendors())
        told = run_worker(DevicesPlan(platform=wanted), extra_environment=environment, limit_s=120.0)
        return str(OpenClDevice.from_plain(told["chosen"])), None
    except PerfsuiteError as error:
        return None, str(error)


def _backend(platform: str, cache_dir: Path) -> str | None:
    """Return why llama.cpp's OpenCL backend does not decode there; its kernels are compiled when it begins."""
    from perfsuite.measure.environment import environment_engine
    from perfsuite.measure.launch import run_worker
    from perfsuite.measure.opencl_backend import set_up_opencl
    from perfsuite.measure.plan import LlamaPlan
    from perfsuite.workload.weights import materialize, resolve

    try:
        engine, models = environment_engine(), cache_dir / "models"
        backend = set_up_opencl(engine, platform, cache_dir)
        model = materialize(resolve(_SMALL_MODEL, cache_dir=models), cache_dir=models)
        plan = LlamaPlan(
            gguf_path=str(model),
            library_dir=str(engine.library_dir),
            engine_build_id=engine.build_id,
            cache_dir=str(cache_dir),
            n_threads=1,
            n_prompt=2,
            n_gen=1,
            n_gpu_layers=_ALL_LAYERS,
            binds_threads=False,
            backend_library=None if backend.library is None else str(backend.library),
        )
        run_worker(plan, extra_environment=backend.environment(), limit_s=_BACKEND_LIMIT_S)
    except PerfsuiteError as error:
        return str(error)
    return None
