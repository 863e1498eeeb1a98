"""``perfsuite devices doctor``: what keeps a device from good measurements, and how to fix it."""

from __future__ import annotations

import argparse
import shutil
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path

from perfsuite import __version__
from perfsuite.cli.answer import Answer, Sheet, give
from perfsuite.cli.kept_folders import user_cache
from perfsuite.device.doctor.examination import examine
from perfsuite.device.doctor.gathering import Finding, Grade, Installed, SuiteState, gather
from perfsuite.device.governors import FILE_NAME, STATE_FOLDER
from perfsuite.device.profile import Profile, find_profile
from perfsuite.device.target.opening import open_target
from perfsuite.errors import PerfsuiteError
from perfsuite.expectation.roofline.row_works import stored_bytes
from perfsuite.measure.board.local_lock import lock_holder
from perfsuite.measure.ebpf_helper import ebpf_obstacle
from perfsuite.measure.environment import environment_engine, environment_opencl_vendors
from perfsuite.measure.kernel_runtime import opencl_environment
from perfsuite.measure.launch import run_worker
from perfsuite.measure.opencl_backend import set_up_opencl
from perfsuite.measure.opencl_platform import OpenClDevice
from perfsuite.measure.plan import SCHEMA, DevicesPlan, LlamaPlan
from perfsuite.workload.weights import materialize, resolve

_STYLES = {Grade.OK: "green", Grade.WARN: "yellow", Grade.FAIL: "red"}

#: Two layers of the smallest architecture, all of them on the device.
_SMALL_MODEL, _ALL_LAYERS = "smollm2-135m-l2-q8_0", 99

#: A driver compiles the backend's hundred kernels in minutes the first time; they are kept.
_BACKEND_LIMIT_S = 150.0


def tell_findings(options: argparse.Namespace) -> int:
    """Ask a device, and tell what was found: a line each, and how many of which there are."""
    profile = find_profile(options.device, asked="")
    findings = examine_device(profile)
    counts = {grade: sum(each.grade is grade for each in findings) for grade in Grade}
    rows = [(each.grade.value, each.what, each.seen, each.mend) for each in findings]
    parts = (
        Sheet(("", profile.name, "seen", "mend"), rows, styles=[_STYLES[each.grade] for each in findings]),
        f"{profile.name}: {counts[Grade.FAIL]} fail, {counts[Grade.WARN]} warn, {counts[Grade.OK]} ok",
    )
    return give(Answer(parts=parts, plain=list(map(asdict, findings))), options, int(counts[Grade.FAIL] > 0))


def examine_device(profile: Profile) -> tuple[Finding, ...]:
    """Ask a device, and return what was found."""
    with closing(open_target(profile.reach)) as target:
        return examine(
            gather(target, profile, here=_own_account(), own_state=own_state, model_bytes=_model_bytes(profile))
        )


def _model_bytes(profile: Profile) -> int | None:
    """Return the size of the default model's weights; None where the catalogue does not have it."""
    if profile.default_model is None:
        return None
    with suppress(PerfsuiteError):
        return stored_bytes(resolve(profile.default_model, cache_dir=Path()))
    return None


def _own_account() -> Installed:
    """Return the version of the suite here, and which llama.cpp it would measure."""
    try:
        engine, problem = environment_engine().build_id, None
    except PerfsuiteError as error:
        engine, problem = None, str(error)
    return Installed(suite_version=__version__, plan_schema=SCHEMA, engine_build_id=engine, engine_problem=problem)


def own_state(opencl_platform: str | None) -> SuiteState:
    """Return what a doctor of this machine looks at.

    While somebody may measure here, no OpenCL driver and no eBPF helper is started, which would disturb him.
    """
    cache_dir, lock = user_cache(), lock_holder()
    is_busy = lock is not None
    device, opencl_problem = (None, None) if is_busy else _opencl(opencl_platform, cache_dir)
    restore_file = cache_dir / STATE_FOLDER / FILE_NAME
    there = next(each for each in (cache_dir, *cache_dir.parents) if each.is_dir())
    asks_backend = not is_busy and opencl_platform is not None
    return SuiteState(
        installed=_own_account(),
        lock=lock,
        restore_file=str(restore_file) if restore_file.exists() else None,
        cache_dir=str(cache_dir),
        cache_free_bytes=shutil.disk_usage(there).free,
        opencl_device=device,
        opencl_problem=opencl_problem,
        ebpf_problem=None if is_busy else ebpf_obstacle(cache_dir),
        backend_problem=_backend(str(opencl_platform), cache_dir) if asks_backend else "not looked at",
        is_busy=is_busy,
    )


def _opencl(wanted: str | None, cache_dir: Path) -> tuple[str | None, str | None]:
    """Return the OpenCL device that would be measured, or why there is none; asked in a process of its own."""
    try:
        environment = opencl_environment(cache_dir, inherited=environment_opencl_vendors())
        told = run_worker(DevicesPlan(platform=wanted), extra_environment=environment, limit_s=120.0)
        return str(OpenClDevice.from_plain(told["chosen"])), None
    except PerfsuiteError as error:
        return None, str(error)


def _backend(platform: str, cache_dir: Path) -> str | None:
    """Return why llama.cpp's OpenCL backend does not decode there; its kernels are compiled when it begins."""
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
