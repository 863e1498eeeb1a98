"""What the processes of a subject are started with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import EngineError
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.shapes.subject_setup import ShapeSetup, set_up_shapes
from perfsuite.workload.shapes.shape_case import Subject

from ...synthetic_opencl_backend import opencl_backend, plain_engine


def set_up(subject: Subject, cache_dir: Path, **changed: Any) -> ShapeSetup:
    """Set up a subject with a few arguments changed."""
    arguments: dict[str, Any] = {
        "log_dir": cache_dir / "logs",
        "n_threads": 2,
        "platform": None,
        "kernels_dir": None,
        "engine": None,
        "seed": 3,
    }
    return set_up_shapes(subject, cache_dir=cache_dir, **{**arguments, **changed})


def test_the_suites_kernels_need_no_engine(tmp_path: Path) -> None:
    """Their process sees OpenCL, reads the kernels that are named, and its programs are built from source."""
    setup = set_up(Subject.TILED, tmp_path, platform="Intel", kernels_dir=tmp_path / "kernels")
    assert setup.environment["PYOPENCL_NO_CACHE"] == "1"
    assert setup.plan.subject == "tiled"
    assert (setup.plan.platform, setup.plan.kernels_dir, setup.plan.seed) == ("Intel", str(tmp_path / "kernels"), 3)
    assert setup.plan.library_dir == ""


def test_ggml_on_the_processor_runs_as_in_a_calibration(engine: Engine, tmp_path: Path) -> None:
    """The plan names the engine and its build, and gives each thread a processor of its own."""
    setup = set_up(Subject.GGML_CPU, tmp_path, engine=engine)
    assert setup.environment == {}
    assert setup.plan.library_dir == str(engine.library_dir)
    assert setup.plan.engine_build_id == engine.build_id
    assert setup.plan.binds_threads
    assert setup.plan.backend_library is None


def test_ggml_on_opencl_has_its_backend_and_its_device(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan names the backend's library and what must be equal for two runs; the environment is the backend's."""
    backend, asked = opencl_backend(tmp_path), []

    def found(*arguments: object) -> OpenClBackend:
        asked.append(arguments)
        return backend

    monkeypatch.setattr("perfsuite.measure.shapes.subject_setup.set_up_opencl", found)
    setup = set_up(Subject.GGML_OPENCL, tmp_path, engine=engine, platform="A plat")
    assert asked == [(engine, "A plat", tmp_path)]
    assert setup.environment == backend.environment()
    assert setup.plan.backend_library == str(backend.library)
    assert setup.plan.n_compute_units == 2
    assert dict(setup.plan.fingerprint)["opencl_driver"] == "1.2"
    assert not setup.plan.binds_threads


def test_an_engine_without_an_opencl_backend_is_refused(tmp_path: Path) -> None:
    """It says which backend is missing and how to make it."""
    with pytest.raises(EngineError, match="holds libggml-opencl"):
        set_up(Subject.GGML_OPENCL, tmp_path, engine=plain_engine(tmp_path))
