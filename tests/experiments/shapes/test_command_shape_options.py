"""Options of commands that measure operations by their shapes."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from perfsuite.device.threads import default_threads
from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.command_shape_options import (
    add_device_options,
    add_size_options,
    add_subject_options,
    asked_sizes,
    check_counts,
    check_shape_bytes,
    chosen_tiling,
    opened_meters,
)
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.workload.shapes.operation_shape import Operation, OperationShape
from perfsuite.workload.shapes.shape_case import Subject, Tiling
from tests.experiments.shapes.conftest import FakeSubjects


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_device_options(parser)
    add_subject_options(parser)
    add_size_options(parser)
    return parser.parse_args(arguments)


def test_sizes_come_by_dimension() -> None:
    found = asked_sizes(parsed("--context", "1:9", "--kv-heads", "4", "--head-size", "64"), Operation.ATTENTION)
    assert {name: each.sizes for name, each in found.items()} == {
        "kvheads": range(4, 5),
        "head": range(64, 65),
        "context": range(1, 10),
    }
    assert asked_sizes(parsed(), Operation.GEMM) == {}


def test_a_size_of_another_operation_is_refused() -> None:
    assert asked_sizes(parsed("--m", "1", "--b", "1", "--n", "8"), Operation.GEMV).keys() == {"n"}
    with pytest.raises(ShapeError, match="--m=2: gemv has no such size; it has --n, --k"):
        asked_sizes(parsed("--m", "2"), Operation.GEMV)
    with pytest.raises(ShapeError, match="--heads=1: gemm has no such size; it has --m, --n, --k"):
        asked_sizes(parsed("--heads", "1"), Operation.GEMM)


def test_the_tile_has_a_default() -> None:
    """64 by vectors of 8, or a smaller tile's width; a tile that no kernel has is refused with those that there are."""
    assert chosen_tiling(parsed()) == Tiling(tile=64, vector=8)
    assert chosen_tiling(parsed("--tile", "8")) == Tiling(tile=8, vector=8)
    assert chosen_tiling(parsed("--tile", "32", "--vector", "16")) == Tiling(tile=32, vector=16)
    with pytest.raises(ShapeError, match="expected a tile of 8, 16, 32, 64"):
        chosen_tiling(parsed("--tile", "48"))


@pytest.mark.parametrize("option", ["--tile", "--vector"])
def test_ggml_chooses_its_own_tile(option: str) -> None:
    assert chosen_tiling(parsed("--subject", "ggml-cpu")) is None
    with pytest.raises(ShapeError, match=f"{option}=8: ggml-opencl cuts its work as it sees fit; leave it out"):
        chosen_tiling(parsed("--subject", "ggml-opencl", option, "8"))


def test_counts_are_one_or_more() -> None:
    check_counts(parsed("--threads", "1"), "threads")
    check_counts(parsed(), "threads")
    for wrong in ("0", "513"):
        with pytest.raises(ShapeError, match=f"--threads={wrong}: expected 1 to 512"):
            check_counts(parsed("--threads", wrong), "threads")


def test_values_that_numpy_cannot_hold_are_refused() -> None:
    """Four bits a value are little to move, and much once each value stands by itself."""
    shape = OperationShape.from_id("gemv/n262144-k4096/q4_0")
    check_shape_bytes([shape], verifies=False)
    with pytest.raises(ShapeError, match=r"n262144-k4096/q4_0: moves 4\d{9} bytes as F32 values, which NumPy"):
        check_shape_bytes([shape], verifies=True)


def test_meters_are_opened_as_the_options_say(opened: FakeSubjects, tmp_path: Path) -> None:
    """Threads and platform, with a folder for logs that is gone afterwards."""
    here = LocalBoard(cache_dir=tmp_path / "cache")
    options = parsed("--threads", "3", "--opencl-platform", "POCL")
    with opened_meters(options, Subject.GGML_CPU, here) as found, opened_meters(parsed(), Subject.TILED, here):
        told = [opened.opened[each] for each in (Subject.GGML_CPU, Subject.TILED)]
        assert found is opened.meters
        assert all(each["log_dir"].is_dir() and each["board"] is here for each in told)
    assert [(each["n_threads"], each["platform"]) for each in told] == [(3, "POCL"), (default_threads(), None)]
    assert not any(each["log_dir"].exists() for each in told)
