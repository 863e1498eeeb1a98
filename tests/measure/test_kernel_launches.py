"""How cases become launches, without a device."""

from __future__ import annotations

import numpy as np
import pytest

from perfsuite.measure.kernel_launches import CPU_TUNING, GPU_TUNING, Tuning, prepare
from perfsuite.workload.kernel_catalog import KernelCase

SMALL = (
    "gemm/m33-n31-k37/f16",
    "gemv_f32/m17-k15/f32",
    "gemv_q4_0/m3-k64/q4_0",
    "bmm_kq/heads4-kvheads2-tokens3-positions17-head6/f16",
    "bmm_kqv/heads4-kvheads2-tokens3-positions17-head6/f16",
    "rms_norm/rows3-columns17/f32",
    "rope_normal/tokens3-heads2-head6/f32",
    "softmax/rows3-columns17/f32",
    "silu_mul/count129/f32",
    "dequantize_q8_0/count96/q8_0",
    "get_rows/rows3-vocab7-columns5/f16",
)


@pytest.mark.parametrize("tuning", [CPU_TUNING, GPU_TUNING], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", SMALL)
def test_sizes_fit(name: str, tuning: Tuning) -> None:
    """The global size is whole work-groups of 256 items at most; arrays take the bytes that the catalogue says.

    The output to expect is finite. A table is read in part.
    """
    case = KernelCase.from_id(f"kernel/{name}")
    launch = prepare(case, tuning, 0)
    local = launch.local_size or (1,) * len(launch.global_size)
    assert all(size % group == 0 for size, group in zip(launch.global_size, local, strict=True))
    assert np.prod(local) <= 256
    assert np.isfinite(launch.expected).all()
    assert 4 * launch.expected.size == case.written_bytes
    assert case.name == "get_rows" or sum(array.nbytes for array in launch.inputs) == case.read_bytes


def test_the_seed_decides_on_the_inputs() -> None:
    case, other = (KernelCase.from_id(f"kernel/gemv_q8_0/m{rows}-k64/q8_0") for rows in (3, 4))
    first, again, reseeded = (prepare(case, CPU_TUNING, seed) for seed in (7, 7, 8))
    assert all(np.array_equal(a, b) for a, b in zip(first.inputs, again.inputs, strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(first.inputs, reseeded.inputs, strict=True))
    assert not np.array_equal(first.inputs[1], prepare(other, CPU_TUNING, 7).inputs[1])
