"""The bench of each subject in a real process, asked from outside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import platformdirs
import pytest

from perfsuite.errors import EngineError, MeasurementError
from perfsuite.expectation.shapes.floor import padded_shape
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import Engine, find_engine
from perfsuite.measure.shapes.meter import ShapeMeters
from perfsuite.measure.shapes.meters import open_meters
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

CASES = {
    Subject.TILED: "shape/tiled/gemm/m3-n65-k33/f16/tile16-vector4",
    Subject.GGML_CPU: "shape/ggml-cpu/gemv/n65-k64/q8_0",
    Subject.GGML_OPENCL: "shape/ggml-opencl/gemv/n65-k64/q8_0",
}


@contextmanager
def real_meters(subject: Subject, log_dir: Path, engine_cache: Path) -> Iterator[ShapeMeters]:
    """Open the meters of a subject; ``tools/opencl_backend.sh`` puts ggml's OpenCL backend into the user's cache."""
    cache_dir = Path(platformdirs.user_cache_dir("perfsuite")) if subject is Subject.GGML_OPENCL else engine_cache
    with open_meters(subject, LocalBoard(cache_dir=cache_dir), log_dir=log_dir, n_threads=2) as meters:
        yield meters


@pytest.mark.parametrize("subject", Subject)
def test_a_subject_is_measured_in_its_process(subject: Subject, tmp_path: Path, engine_cache: Path) -> None:
    """It computes an awkward shape right, and takes turns with the padded one."""
    case = ShapeCase.from_id(CASES[subject])
    with real_meters(subject, tmp_path, engine_cache) as meters:
        meter = meters.resident()
        assert meter.description.n_compute_units > 0
        assert meter.problem(case) is None
        assert meter.verify(case).is_correct
        pairs = meter.pairs(case, replace(case, shape=padded_shape(case)), 2)
        assert len(pairs.old_ns) == len(pairs.new_ns) == 2
        assert min(pairs.old_ns + pairs.new_ns) > 0


@pytest.mark.parametrize("subject", [Subject.TILED, Subject.GGML_CPU])
def test_a_case_of_another_subject_is_a_problem(subject: Subject, tmp_path: Path, engine_cache: Path) -> None:
    other = Subject.GGML_CPU if subject is Subject.TILED else Subject.TILED
    with real_meters(subject, tmp_path, engine_cache) as meters:
        meter = meters.resident()
        assert meter.problem(ShapeCase.from_id(CASES[other])) == f"subject {other.value}; expected {subject.value}"
        with pytest.raises(MeasurementError, match=CASES[other]):
            meter.verify(ShapeCase.from_id(CASES[other]))
        assert meter.verify(ShapeCase.from_id(CASES[subject])).is_correct


def test_a_platform_that_there_is_not_says_so(tmp_path: Path, engine_cache: Path) -> None:
    """The reason comes from the process, at the first call."""
    with open_meters(
        Subject.TILED, LocalBoard(cache_dir=engine_cache), log_dir=tmp_path, n_threads=1, platform="Babbage"
    ) as meters:
        meter = meters.resident()
        with pytest.raises(MeasurementError, match="platform named like 'Babbage'"):
            meter.problem(ShapeCase.from_id(CASES[Subject.TILED]))


def test_an_engine_that_changed_is_refused(tmp_path: Path, engine_cache: Path) -> None:
    stale: Engine = replace(find_engine(), build_id="0" * 8)
    with open_meters(
        Subject.GGML_CPU, LocalBoard(cache_dir=engine_cache), log_dir=tmp_path, n_threads=1, engine=stale
    ) as meters:
        meter = meters.resident()
        with pytest.raises((MeasurementError, EngineError), match="the plan was made for 00000000"):
            meter.problem(ShapeCase.from_id(CASES[Subject.GGML_CPU]))
