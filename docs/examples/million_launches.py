"""A million launches in one process, to see that its memory stays flat: run it under 'perfsuite trace --opencl --'."""

from __future__ import annotations

import numpy as np
import pyopencl as cl

N_LAUNCHES, N_PRINTED, BATCH, PAGE_BYTES = 1_000_000, 10, 500, 4096

SOURCE = "__kernel void add_one(__global float *values) { values[get_global_id(0)] += 1; }"


def resident_mib() -> float:
    """Return the resident size of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * PAGE_BYTES / 2**20


context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
queue = cl.CommandQueue(context)
values = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=np.zeros(64, np.float32))
kernel = cl.Program(context, SOURCE).build().add_one
kernel.set_args(values)
for launch in range(N_LAUNCHES):
    cl.enqueue_nd_range_kernel(queue, kernel, (64,), (64,))
    if launch % BATCH == BATCH - 1:
        queue.finish()
    if launch % (N_LAUNCHES // N_PRINTED) == N_LAUNCHES // N_PRINTED - 1:
        print(f"{launch + 1} launches, {resident_mib():.1f} MiB", flush=True)
result = np.empty(64, np.float32)
cl.enqueue_copy(queue, result, values)
print("right" if (result == N_LAUNCHES).all() else "WRONG")
