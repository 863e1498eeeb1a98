"""What the machine was like around a replicate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from perfsuite.experiments.machine_states import GroupWitness
from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.run_config import RunConfig
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


def witness(group: str = "llama") -> GroupWitness:
    """A witness of a group on a board with three loads."""
    config = SimpleNamespace(board=_Board(0.5, 1.5, 2.5), began_s=time.monotonic())
    return GroupWitness(config=cast("RunConfig", config), group=group, what="a test", progress=ProgressLine(None, 1))


def test_the_machine_is_read_before_a_replicate_and_never_after() -> None:
    """One reading a replicate, the first one is the group's; what is not measured is None, what is measured rounded."""
    log = witness()
    assert log.started_with == {}
    for complaint in (None, "busy", None):
        log.before(0)
        log.after([_PAYLOAD], complaint)
    assert log.started_with["load_average"] == 0.5
    assert [each.load_average for each in log.states] == [0.5, 1.5, 2.5]
    assert [each.is_valid for each in log.states] == [True, False, True]
    assert [each.throttled for each in log.states] == [False, False, True]
    first = log.states[0]
    assert (first.cpu_mhz, first.temperature_celsius, first.steal_ratio) == (None, 40.5, None)
    assert (first.waiting_ratio, first.battery_ratio) == (0.666667, None)


def test_what_was_sampled_is_kept_by_its_extremes() -> None:
    """The slowest and fastest clock and the hottest moment of a replicate; a look that saw nothing counts not."""
    log = witness("kernels")
    seen = [sample(2400.0, 50.5), sample(None, None), sample(1800.0, 83.0), sample(2100.0, None)]
    for more in ({DEVICE_SAMPLES: seen, WAS_THROTTLED: True}, {DEVICE_SAMPLES: [sample(None, None)]}, {}):
        log.before(0)
        log.after([{**_PAYLOAD, **more}], None)
    found = [(each.least_cpu_mhz, each.most_cpu_mhz, each.most_celsius) for each in log.states]
    assert found == [(1800.0, 2400.0, 83.0), (None, None, None), (None, None, None)]
    assert [each.throttled for each in log.states] == [True, False, True]
