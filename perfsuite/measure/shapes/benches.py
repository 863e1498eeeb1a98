"""Makes the bench of a subject, in the process that measures."""

from __future__ import annotations

import ctypes
from pathlib import Path

from perfsuite.measure.plan import ShapesPlan
from perfsuite.measure.shapes.meter import ShapeBench
from perfsuite.workload.shapes.shape_case import Subject


def make_bench(plan: ShapesPlan, library: ctypes.CDLL | None) -> ShapeBench:
    """Return the bench that a plan asks for; `library` is the engine's, which ggml's operators need."""
    if library is None:
        from perfsuite.measure.engine_store import KERNELS_DIR
        from perfsuite.measure.opencl_platform import choose_device
        from perfsuite.measure.shapes.tiled_bench import TiledBench

        kernels_dir = Path(plan.kernels_dir) if plan.kernels_dir else KERNELS_DIR
        return TiledBench(choose_device(plan.platform), log_dir=Path(plan.log_dir), kernels_dir=kernels_dir)
    from perfsuite.measure.shapes.ggml_bench import GgmlBench

    return GgmlBench(
        library,
        backend="cpu" if Subject(plan.subject) is Subject.GGML_CPU else "opencl",
        n_threads=plan.n_threads,
        backend_library=Path(plan.backend_library) if plan.backend_library else None,
        engine_build_id=plan.engine_build_id,
        n_compute_units=plan.n_compute_units,
        fingerprint=plan.fingerprint,
    )
