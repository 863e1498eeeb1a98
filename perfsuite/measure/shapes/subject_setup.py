"""Sets up a subject: the plan of its processes, and the environment that they are started with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from perfsuite.measure import launch
from perfsuite.measure.engine import Engine
from perfsuite.measure.kernel_runtime import opencl_environment
from perfsuite.measure.llama_plan import binds_threads
from perfsuite.measure.opencl_setup import set_up_opencl
from perfsuite.measure.plan import ShapesPlan
from perfsuite.workload.shapes.shape_case import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeSetup:
    """What each process that measures a subject is started with."""

    plan: ShapesPlan
    environment: Mapping[str, str]


def set_up_shapes(
    subject: Subject,
    *,
    cache_dir: Path,
    log_dir: Path,
    n_threads: int,
    platform: str | None,
    kernels_dir: Path | None,
    engine: Engine | None,
    seed: int,
) -> ShapeSetup:
    """Find what a subject needs; `PerfsuiteError` where there is no such platform, no engine, or no OpenCL backend."""
    plan = ShapesPlan(
        subject=subject.value,
        n_threads=n_threads,
        log_dir=str(log_dir),
        seed=seed,
        platform=platform,
        kernels_dir=str(kernels_dir) if kernels_dir else None,
    )
    if subject is Subject.TILED:
        inherited = launch.environment_opencl_vendors()
        return ShapeSetup(plan=plan, environment=opencl_environment(cache_dir, inherited=inherited))
    engine = engine or launch.environment_engine()
    plan = replace(plan, library_dir=str(engine.library_dir), engine_build_id=engine.build_id, cache_dir=str(cache_dir))
    if subject is Subject.GGML_CPU:  # as in a calibration: with a processor for each thread, where there may be one
        return ShapeSetup(plan=replace(plan, binds_threads=binds_threads(engine)), environment={})
    backend = set_up_opencl(engine, plan.platform, cache_dir)
    plan = replace(
        plan,
        backend_library=str(backend.library) if backend.library else None,
        n_compute_units=backend.device.compute_units,
        fingerprint=tuple(backend.fingerprint.items()),
    )
    return ShapeSetup(plan=plan, environment=backend.environment())
