"""The sentinels, with the probe library replaced."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_int, c_int64, c_void_p
from typing import Any, cast

import pytest

from perfsuite.errors import MeasurementError
from perfsuite.measure.probes import ProbeBandwidth, ProbeLatency, ProbeRate, ProbeSetup
from perfsuite.measure.sentinel import COMPUTE_FLOPS, MEMORY_BYTES, SENTINELS, Sentinels, measure_sentinels


class FakeLibrary:
    """Answers with fixed rates, and notes what was asked."""

    def __init__(self, status: int = 0) -> None:
        self.asked: list[tuple[int, int, int]] = []
        self._status = status
        setup = POINTER(ProbeSetup)
        self.ps_probe_bandwidth = CFUNCTYPE(c_int, setup, c_int64, POINTER(ProbeBandwidth))(self._bandwidth)
        self.ps_probe_compute = CFUNCTYPE(c_int, setup, c_int, POINTER(ProbeRate))(self._compute)
        self.ps_probe_dispatch = CFUNCTYPE(c_int, setup, POINTER(ProbeLatency))(lambda *_: 0)
        self._text = ctypes.create_string_buffer(b"no luck")
        self.ps_status_text = CFUNCTYPE(c_void_p, c_int)(lambda status: ctypes.addressof(self._text))

    def _bandwidth(self, setup: Any, working_set_bytes: int, out: Any) -> int:
        rates = out.contents
        rates.read.best_per_s, rates.read.median_per_s, rates.copy.median_per_s = 1e12, 64e9, 1e3
        return self._noted(setup, working_set_bytes)

    def _compute(self, setup: Any, element: int, out: Any) -> int:
        out.contents.best_per_s, out.contents.median_per_s = 1e15, 1e11
        return self._noted(setup, element)

    def _noted(self, setup: Any, argument: int) -> int:
        self.asked.append((argument, setup.contents.n_threads, setup.contents.budget_ms))
        return self._status


def measured(library: FakeLibrary) -> Sentinels:
    """Measure with the fake on three threads."""
    return measure_sentinels(cast(ctypes.CDLL, library), 3)


def test_rates_become_times_of_fixed_work() -> None:
    """The median rate of reading and of single-precision arithmetic gives the time of a fixed amount of each."""
    found = measured(FakeLibrary())
    assert found.memory_ns == round(MEMORY_BYTES / 64)
    assert found.compute_ns == COMPUTE_FLOPS // 100
    assert found.times_ns == {"memory": found.memory_ns, "compute": found.compute_ns}
    assert tuple(found.times_ns) == SENTINELS


def test_sentinels_are_short() -> None:
    """Both run on the threads of the cases, and are given less than 200 ms together."""
    library = FakeLibrary()
    measured(library)
    assert [(argument, threads) for argument, threads, _ in library.asked] == [(MEMORY_BYTES, 3), (0, 3)]
    assert sum(budget for *_, budget in library.asked) < 200


def test_a_probe_that_fails_is_told() -> None:
    """A refusal of the library is one line."""
    with pytest.raises(MeasurementError, match="no luck"):
        measured(FakeLibrary(status=3))


def test_sentinels_survive_the_record() -> None:
    """What a worker sends is what its parent reads."""
    sentinels = Sentinels(memory_ns=5, compute_ns=7)
    assert Sentinels.from_plain(sentinels.to_plain()) == sentinels
