"""A launch with its buffers on the device, and a guard behind its output."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from perfsuite.measure.kernel_launches import Launch

#: Values behind the output that a kernel must leave alone.
GUARD_VALUES = 64
#: What output and guard hold before a launch whose output is read: as F32, NaN.
POISON = 0xFFFFFFFF


class PlacedLaunch:
    """A kernel with its arguments set; it holds their buffers, which OpenCL does not."""

    def __init__(
        self,
        queue: cl.CommandQueue,
        kernel: cl.Kernel,
        launch: Launch,
        *,
        n_outputs: int,
        beside: PlacedLaunch | None = None,
    ) -> None:
        """Copy the inputs to the device, and make room for so many outputs and the guard.

        A launch `beside` another, of the same inputs, has its buffers: where these lie is no difference between them.
        """
        flags = cl.mem_flags
        self._queue, self._kernel, self._launch = queue, kernel, launch
        self._poison = np.full(n_outputs + GUARD_VALUES, POISON, dtype=np.uint32)
        self._inputs: list[cl.Buffer]
        self._out: cl.Buffer
        if beside is not None:
            self._inputs, self._out = beside._inputs, beside._out
        else:
            self._inputs = [
                cl.Buffer(queue.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array)
                for array in launch.inputs
            ]
            self._out = cl.Buffer(queue.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=self._poison)
        self.bind()

    def bind(self) -> None:
        """Set the kernel's arguments; again where another launch of the same kernel has set its own since."""
        self._kernel.set_args(*self._inputs, self._out, *self._launch.scalars)

    def enqueue(self) -> cl.Event:
        """Launch once and do not wait."""
        return cl.enqueue_nd_range_kernel(self._queue, self._kernel, self._launch.global_size, self._launch.local_size)

    def run(self) -> cl.Event:
        """Launch once and wait."""
        event = self.enqueue()
        event.wait()
        return event

    def outputs(self) -> NDArray[np.float32] | None:
        """Run once on a poisoned output and return it, NaN where nothing was written; None if the guard was."""
        cl.enqueue_copy(self._queue, self._out, self._poison)
        self.run()
        bits = np.empty_like(self._poison)
        cl.enqueue_copy(self._queue, bits, self._out)
        if (bits[-GUARD_VALUES:] != POISON).any():
            return None
        return bits[:-GUARD_VALUES].view(np.float32)

    def release(self) -> None:
        """Give back the buffers; the launch is of no use afterwards."""
        for buffer in (*self._inputs, self._out):
            buffer.release()
