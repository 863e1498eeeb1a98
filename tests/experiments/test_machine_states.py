"""What the machine was like around a replicate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from perfsuite.experiments.machine_states import StateLog
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.watching import DEVICE_SAMPLES, WAS_THROTTLED
from perfsuite.measure.contention import Contention

_HALF = Contention(wall_ns=1, running_ns=3, waiting_ns=6, steal_ratio=None, others_ratio=None)
_PAYLOAD = {"contention": _HALF.to_plain()}


def sample(mhz: float | None, celsius: float | None) -> dict[str, float | None]:
    """A look at the device, as a payload has it."""
    return {"cpu_mhz": mhz, "temperature_celsius": celsius}


class _Board(LocalBoard):
    """A board with one load after the other, throttled from the second on."""

    def __init__(self, *loads: float) -> None:
        super().__init__(cache_dir=Path())
        self._left = list(loads)

    def covariates(self) -> Mapping[str, float | None]:
        load = self._left.pop(0)
        throttled = 0.0 if self._left else 1.0
        return {"load_average": load, "cpu_mhz": None, "temperature_celsius": 40.5, "throttled": throttled}


def test_the_machine_is_read_before_a_replicate_and_never_after() -> None:
    """One reading a replicate; what is not measured is None, and what is measured is rounded."""
    log = StateLog(group="llama", board=_Board(0.5, 1.5), began_s=time.monotonic())
    for is_valid in (True, False):
        log.before()
        log.after(_PAYLOAD, is_valid=is_valid)
    first, second = log.states
    assert (first.load_average, second.load_average) == (0.5, 1.5)
    assert (first.cpu_mhz, first.temperature_celsius, first.steal_ratio) == (None, 40.5, None)
    assert first.waiting_ratio == 0.666667
    assert (first.throttled, second.throttled, first.battery_ratio) == (False, True, None)
    assert (first.is_valid, second.is_valid) == (True, False)


def test_the_first_reading_is_that_of_the_group() -> None:
    """A group's covariates are those before its first replicate, whatever came of it."""
    log = StateLog(group="llama", board=_Board(0.5, 1.5), began_s=0.0)
    assert log.started_with == {}
    log.before()
    log.before()
    assert log.started_with["load_average"] == 0.5


def test_what_was_sampled_is_kept_by_its_extremes() -> None:
    """The slowest and fastest clock and the hottest moment of a replicate; a look that saw nothing counts not."""
    log = StateLog(group="kernels", board=_Board(0.5, 1.5, 2.5), began_s=0.0)
    seen = [sample(2400.0, 50.5), sample(None, None), sample(1800.0, 83.0), sample(2100.0, None)]
    for more in ({DEVICE_SAMPLES: seen, WAS_THROTTLED: True}, {DEVICE_SAMPLES: [sample(None, None)]}, {}):
        log.before()
        log.after({**_PAYLOAD, **more}, is_valid=True)
    found = [(each.least_cpu_mhz, each.most_cpu_mhz, each.most_celsius) for each in log.states]
    assert found == [(1800.0, 2400.0, 83.0), (None, None, None), (None, None, None)]
    assert [each.throttled for each in log.states] == [True, False, True]
