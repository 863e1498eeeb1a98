"""The kernels' catalogue: ids, FLOPs and bytes against figures worked out by hand."""

from __future__ import annotations

import pytest

from perfsuite.workload.kernel_catalog import KernelCase


@pytest.mark.parametrize(
    ("case_id", "flops", "read_bytes", "written_bytes"),
    [
        ("gemm/m2-n3-k4/f32", 48, 4 * 8 + 4 * 12, 4 * 6),
        ("gemm/m2-n3-k4/f16", 48, 2 * 8 + 4 * 12, 4 * 6),
        ("gemv_f32/m3-k5/f32", 30, 4 * 15 + 4 * 5, 12),
        ("gemv_q8_0/m2-k64/q8_0", 256, 4 * 34 + 4 * 64, 8),
        ("gemv_q8_0/m1536-k576/q8_0", 1_769_472, 940_032 + 4 * 576, 4 * 1536),
        ("gemv_q4_0/m2-k64/q4_0", 256, 4 * 18 + 4 * 64, 8),
        ("bmm_kq/heads4-kvheads2-tokens3-positions5-head8/f16", 2 * 60 * 8, 2 * 80 + 4 * 96, 4 * 60),
        ("bmm_kqv/heads4-kvheads2-tokens3-positions5-head8/f16", 2 * 60 * 8, 2 * 80 + 4 * 60, 4 * 96),
        ("rms_norm/rows2-columns10/f32", 88, 4 * 20 + 4 * 10, 80),
        ("rope_normal/tokens2-heads3-head4/f32", 11 * 12, 4 * 24 + 4 * 2, 96),
        ("rope_neox/tokens2-heads3-head4/f32", 11 * 12, 4 * 24 + 4 * 2, 96),
        ("softmax/rows2-columns10/f32", 122, 80, 80),
        ("silu_mul/count10/f32", 40, 80, 40),
        ("add/count10/f32", 10, 80, 40),
        ("dequantize_q8_0/count64/q8_0", 64, 68, 256),
        ("dequantize_q4_0/count64/q4_0", 128, 36, 256),
        ("get_rows/rows2-vocab100-columns10/f16", 0, 4 * 2 + 2 * 20, 80),
    ],
)
def test_costs_by_hand(case_id: str, flops: int, read_bytes: int, written_bytes: int) -> None:
    case = KernelCase.from_id(f"kernel/{case_id}")
    assert (case.flops, case.read_bytes, case.written_bytes) == (flops, read_bytes, written_bytes)


def test_case_id_and_back() -> None:
    case = KernelCase(name="gemm", shape=(("m", 64), ("n", 64), ("k", 576)), type="f32")
    assert case.case_id == "kernel/gemm/m64-n64-k576/f32"
    assert KernelCase.from_id(case.case_id) == case
