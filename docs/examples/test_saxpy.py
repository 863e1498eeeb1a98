"""Your own kernel, judged like the suite's: pytest --device=host docs/examples/test_saxpy.py -k saxpy."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest

N_VALUES = 1 << 20

SOURCE = """
__kernel void saxpy(__global const float *x, __global const float *y, __global float *out, float a) {
    size_t i = get_global_id(0);
    out[i] = a * x[i] + y[i];
}
"""


@pytest.mark.parametrize("group", [16, 64])
def test_saxpy(perf, group):
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    x, y = np.random.default_rng(0).normal(size=(2, N_VALUES)).astype(np.float32)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    inputs = [cl.Buffer(context, flags, hostbuf=each) for each in (x, y)]
    output = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, x.nbytes)
    kernel = cl.Program(context, SOURCE).build().saxpy

    def is_right() -> bool:
        out = np.empty_like(x)
        cl.enqueue_copy(queue, out, output)
        return np.allclose(out, 2 * x + y, rtol=1e-5)

    name = f"saxpy/n{N_VALUES}-group{group}/f32"
    arguments = (*inputs, output, np.float32(2))
    perf.opencl(queue, kernel, (N_VALUES,), (group,), *arguments, name=name, check=is_right)
