"""The cases that a command line describes."""

from __future__ import annotations

import argparse

import pytest

from perfsuite.errors import ShapeError
from perfsuite.experiments.shapes.command_shape_options import add_size_options, add_subject_options, check_shape_bytes
from perfsuite.experiments.shapes.command_sweep_cases import SweepRequest, sweep_request


def request(operation: str, *arguments: str) -> SweepRequest:
    """What a sweep asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("operation")
    add_subject_options(parser)
    add_size_options(parser)
    return sweep_request(parser.parse_args([operation, *arguments]))


def test_cases_differ_in_the_swept_size() -> None:
    """One a size, with the defaults of the device for what was not given."""
    setting = request("bmm", "--n", "3:5", "--k", "64", "--tile", "16").setting(n_compute_units=5)
    assert [case.case_id for case in setting.cases] == [
        f"shape/tiled/bmm/b10-m1-n{n}-k64/f32/tile16-vector8" for n in (3, 4, 5)
    ]
    assert (setting.swept, setting.sizes, setting.step) == ("n", (3, 4, 5), 16)


def test_ggml_has_no_tile() -> None:
    """Its case says who computes."""
    setting = request("gemv", "--subject", "ggml-cpu", "--type", "q8_0", "--n", "3:5").setting(n_compute_units=2)
    assert setting.cases[0].case_id == "shape/ggml-cpu/gemv/n3-k2048/q8_0"


def test_a_row_is_whole_blocks_of_its_type() -> None:
    """A range of other sizes is refused with one that is accepted."""
    assert request("gemm", "--type", "q8_0", "--k", "32:128:32").setting(2).sizes == (32, 64, 96, 128)
    with pytest.raises(ShapeError, match=r"--k: q8_0 stores rows in blocks of 32, and 33 is no multiple .* 32:512:32"):
        request("gemm", "--type", "q8_0", "--k", "32:128").setting(2)
    with pytest.raises(ShapeError, match="--head-size: q4_0 stores rows in blocks of 32, and 80 is no multiple"):
        request("attention", "--type", "q4_0", "--head-size", "80").setting(2)


def test_heads_that_kv_heads_do_not_divide_are_refused() -> None:
    """By the shape itself."""
    with pytest.raises(ShapeError, match="expected heads to be a multiple of kvheads"):
        request("attention", "--heads", "9", "--kv-heads", "2").setting(2)


def test_a_case_that_moves_too_much_is_refused() -> None:
    """Before anything is drawn."""
    check_shape_bytes([case.shape for case in request("bmm").setting(2).cases], verifies=True)
    large = request("gemv", "--n", "1000:1000000:1000").setting(2)
    with pytest.raises(ShapeError, match=r"gemv/n1000000-k2048/f32: moves .* bytes, expected at most"):
        check_shape_bytes([case.shape for case in large.cases], verifies=False)
