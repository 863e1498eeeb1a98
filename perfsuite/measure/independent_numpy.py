"""What NumPy reaches on this processor, in a process whose environment says on how many threads its BLAS works."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from perfsuite.expectation.roofline.ceiling import CPU, IndependentRate, Resource

#: Rows of the square matrices: large enough that a blocked product works from the caches.
_ORDERS = (1024, 2048)
_LEAST_REPETITIONS = 3
_VALUE_BYTES = 4


def blas_environment(n_threads: int) -> dict[str, str]:
    """Return the variables by which the BLAS libraries that NumPy comes with take their number of threads."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    return dict.fromkeys(names, str(n_threads))


def measure_numpy(*, n_threads: int, working_set_bytes: int, budget_ms: int) -> tuple[IndependentRate, ...]:
    """Measure a product of F32 matrices, and a copy and a sum of arrays on one thread, as NumPy knows no other.

    A product of two matrices of order n is 2 n³ FLOPs. ``np.copyto(a, b)`` moves two arrays, ``np.add(b, c, out=a)``
    three, as a triad does; the arrays together take ``working_set_bytes``.
    """
    share_ns = budget_ms * 1_000_000 // (len(_ORDERS) + 2)
    product = max(2 * order**3 / _least_s(_product(order), share_ns) for order in _ORDERS)
    pair, three = (np.ones((n, working_set_bytes // n // _VALUE_BYTES), dtype=np.float32) for n in (2, 3))
    copy_s = _least_s(lambda: np.copyto(pair[0], pair[1]), share_ns)
    add_s = _least_s(lambda: np.add(three[1], three[2], out=three[0]), share_ns)
    return (
        _rate(Resource.COMPUTE, "fp32", n_threads, product),
        _rate(Resource.BANDWIDTH, "copy", 1, pair.nbytes / copy_s),
        _rate(Resource.BANDWIDTH, "triad", 1, three.nbytes / add_s),
    )


def _product(order: int) -> Callable[[], object]:
    a, b = (np.full((order, order), value, dtype=np.float32) for value in (0.5, 0.25))
    out = np.empty_like(a)
    return lambda: np.matmul(a, b, out=out)


def _least_s(work: Callable[[], object], share_ns: int) -> float:
    """Return the shortest time of a piece of work, which is repeated until its share of the budget is over."""
    work()
    times_ns: list[int] = []
    began_ns = time.perf_counter_ns()
    while len(times_ns) < _LEAST_REPETITIONS or time.perf_counter_ns() - began_ns < share_ns:
        start_ns = time.perf_counter_ns()
        work()
        times_ns.append(time.perf_counter_ns() - start_ns)
    return max(1, min(times_ns)) * 1e-9


def _rate(resource: Resource, kind: str, n_threads: int, best_per_s: float) -> IndependentRate:
    return IndependentRate(
        program="numpy", resource=resource, kind=kind, processor=CPU, n_threads=n_threads, best_per_s=best_per_s
    )
