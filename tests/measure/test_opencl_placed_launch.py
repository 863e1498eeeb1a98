"""A launch with its buffers, on a made-up OpenCL whose buffers are arrays."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from numpy.typing import NDArray

from perfsuite.measure.kernel_launches import Launch
from perfsuite.measure.opencl import GUARD_VALUES, PlacedLaunch

LAUNCH = Launch(
    source="a.cl",
    entry="a",
    inputs=(np.ones(3, dtype=np.float32),),
    scalars=(np.int32(3),),
    global_size=(8,),
    local_size=(4,),
)
QUEUE: Any = SimpleNamespace(context=None)

Write = Callable[[NDArray[np.float32]], None]


class _FakeBuffer:
    def __init__(self, context: Any, flags: int, hostbuf: NDArray[Any]) -> None:
        self.array: NDArray[Any] | None = hostbuf.copy()

    def release(self) -> None:
        self.array = None


def _copied(queue: Any, to: Any, source: Any) -> None:
    arrays = [each.array if isinstance(each, _FakeBuffer) else each for each in (to, source)]
    arrays[0][...] = arrays[1]


class _FakeKernel:
    def __init__(self) -> None:
        self.write: Write = lambda out: None
        self.arguments: tuple[Any, ...] = ()

    def set_args(self, *arguments: Any) -> None:
        self.arguments = arguments


def _launched(queue: Any, kernel: _FakeKernel, global_size: tuple[int, ...], local_size: tuple[int, ...]) -> Any:
    assert (global_size, local_size) == ((8,), (4,))
    kernel.write(kernel.arguments[1].array.view(np.float32))
    return SimpleNamespace(wait=lambda: None)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(cl, "Buffer", _FakeBuffer)
    monkeypatch.setattr(cl, "enqueue_copy", _copied)
    monkeypatch.setattr(cl, "enqueue_nd_range_kernel", _launched)
    return _FakeKernel()


def test_arguments(kernel: Any) -> None:
    placed = PlacedLaunch(QUEUE, kernel, LAUNCH, n_outputs=5)
    given, out, scalar = kernel.arguments
    assert (given.array == LAUNCH.inputs[0]).all()
    assert out.array.size == 5 + GUARD_VALUES
    assert scalar == 3
    placed.release()
    assert given.array is out.array is None


def test_outputs_are_poisoned_each_time(kernel: Any) -> None:
    """What a launch leaves out is NaN, though an earlier one wrote it."""
    placed = PlacedLaunch(QUEUE, kernel, LAUNCH, n_outputs=2)

    def write(n_values: int) -> Write:
        return lambda out: out[:n_values].fill(4)

    kernel.write = write(2)
    first = placed.outputs()
    kernel.write = write(1)
    second = placed.outputs()
    assert first is not None
    assert second is not None
    assert first.tolist() == [4, 4]
    assert second[0] == 4
    assert np.isnan(second[1])


@pytest.mark.parametrize("place", [0, GUARD_VALUES - 1])
def test_a_broken_guard_is_no_output(kernel: Any, place: int) -> None:
    placed = PlacedLaunch(QUEUE, kernel, LAUNCH, n_outputs=2)
    kernel.write = lambda out: out[2 + place : 3 + place].fill(0)
    assert placed.outputs() is None
