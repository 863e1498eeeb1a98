"""The bench of each subject in a real process, asked from outside."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import platformdirs
import pytest

from perfsuite.errors import MeasurementError
from perfsuite.expectation.shapes.floor import padded_shape
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.shapes.meters import open_meters
from perfsuite.workload.shapes.shape_case import ShapeCase, Subject

CASES = {
    Subject.TILED: "shape/tiled/gemm/m3-n65-k33/f16/tile16-vector4",
    Subject.GGML_CPU: "shape/ggml-cpu/gemv/n65-k64/q8_0",
    Subject.GGML_OPENCL: "shape/ggml-opencl/gemv/n65-k64/q8_0",
}


@pytest.mark.parametrize("subject", Subject)
def test_a_subject_is_measured_in_its_process(subject: Subject, tmp_path: Path, engine_cache: Path) -> None:
    """It computes an awkward shape right, and takes turns with the padded one."""
    case = ShapeCase.from_id(CASES[subject])
    # ``tools/opencl_backend.sh`` puts ggml's OpenCL backend into the user's cache
    cache_dir = Path(platformdirs.user_cache_dir("perfsuite")) if subject is Subject.GGML_OPENCL else engine_cache
    with (
        closing(LocalBoard(cache_dir=cache_dir)) as board,
        open_meters(subject, board, log_dir=tmp_path, n_threads=2) as meters,
    ):
        meter = meters.resident()
        assert meter.description.n_compute_units > 0
        assert meter.problem(case) is None
        assert meter.verify(case).is_correct
        pairs = meter.pairs(case, replace(case, shape=padded_shape(case)), 2)
        assert len(pairs.old_ns) == len(pairs.new_ns) == 2
        assert min(pairs.old_ns + pairs.new_ns) > 0
        other = CASES[Subject.GGML_CPU if subject is Subject.TILED else Subject.TILED]
        with pytest.raises(MeasurementError, match=f"{other}: .*expected {subject.value}"):
            meter.verify(ShapeCase.from_id(other))
