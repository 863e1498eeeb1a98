"""What a group of replicates tells of the machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

from perfsuite.experiments.progress import ProgressLine
from perfsuite.experiments.replicates import GroupWitness, Replicates, collect_replicates
from perfsuite.experiments.run_config import RunConfig
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.watching import DEVICE_SAMPLES, WAS_THROTTLED
from perfsuite.measure.competition import Competition
from perfsuite.measure.contention import Contention
from perfsuite.verdict.compare import MIN_SAMPLES

_HALF = Contention(wall_ns=1, running_ns=3, waiting_ns=6, steal_ratio=None, others_ratio=None)
_PAYLOAD = {"contention": _HALF.to_plain()}


def sample(mhz: float | None, celsius: float | None) -> dict[str, float | None]:
    return {"cpu_mhz": mhz, "temperature_celsius": celsius}


class _LoadedBoard(LocalBoard):
    """A board with one load after the other, throttled from the second on."""

    def __init__(self, *loads: float) -> None:
        super().__init__(cache_dir=Path())
        self._left = list(loads)

    def covariates(self) -> Mapping[str, float | None]:
        load = self._left.pop(0)
        throttled = 0.0 if self._left else 1.0
        return {"load_average": load, "cpu_mhz": None, "temperature_celsius": 40.5, "throttled": throttled}


def witness(group: str = "llama") -> GroupWitness:
    config = SimpleNamespace(board=_LoadedBoard(0.5, 1.5, 2.5), began_s=time.monotonic() - 5.0)
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
    assert 5.0 <= first.at_s <= log.states[1].at_s < 60.0
    assert (first.cpu_mhz, first.temperature_celsius, first.steal_ratio) == (None, 40.5, None)
    assert (first.waiting_ratio, first.battery_ratio) == (0.666667, None)


def test_what_was_sampled_is_kept_by_its_extremes() -> None:
    log = witness("kernels")
    seen = [sample(2400.0, 50.5), sample(None, None), sample(1800.0, 83.0), sample(2100.0, None)]
    for more in ({DEVICE_SAMPLES: seen, WAS_THROTTLED: True}, {DEVICE_SAMPLES: [sample(None, None)]}, {}):
        log.before(0)
        log.after([{**_PAYLOAD, **more}], None)
    found = [(each.least_cpu_mhz, each.most_cpu_mhz, each.most_celsius) for each in log.states]
    assert found == [(1800.0, 2400.0, 83.0), (None, None, None), (None, None, None)]
    assert [each.throttled for each in log.states] == [True, False, True]


def payload(waiting_ns: int | None = 0, sentinels: dict[str, int] | None = None) -> dict[str, Any]:
    contention = {"wall_ns": 1, "running_ns": 100, "waiting_ns": waiting_ns, "steal_ratio": None, "others_ratio": None}
    return {"contention": contention, **({"sentinels": sentinels} if sentinels else {})}


def replicates(*payloads: dict[str, Any]) -> Replicates:
    return Replicates(payloads=payloads, complaint=None, n_discarded=0, started_with={"load_average": 0.5})


def test_sentinels_and_covariates_are_gathered() -> None:
    """The median competition is that of those that know it."""
    found = replicates(
        payload(sentinels={"memory_ns": 1, "compute_ns": 2}),
        payload(),
        payload(sentinels={"memory_ns": 3, "compute_ns": 4}),
    )
    assert found.sentinels_ns == {"memory": (1, 3), "compute": (2, 4)}
    assert replicates(payload()).sentinels_ns == {}
    assert replicates().sentinels_ns == {}
    assert replicates(payload(0), payload(100), payload(300), payload(None)).covariates == {
        "load_average": 0.5,
        "waiting_ratio": 0.5,
        "steal_ratio": None,
    }


class _Board(LocalBoard):
    """A machine on which nobody is at work when one looks."""

    def competition(self) -> Competition:
        return Competition(others_ratio=0.01, processors={"cc1plus": 0.3})


def collected(
    *payloads: dict[str, Any], n_replicates: int = 10, wait_quiet_s: float = 0.0, budget_s: float | None = None
) -> Replicates:
    """What comes of these payloads and of Ctrl-C after them; waiting for a tenth of the time is a complaint."""

    def complain(contention: Contention, _: object) -> str | None:
        return "somebody else was at work" if (contention.waiting_ratio or 0.0) >= 0.1 else None

    config = SimpleNamespace(
        n_replicates=n_replicates,
        profile=SimpleNamespace(max_others_ratio=0.05),
        board=_Board(cache_dir=Path()),
        began_s=time.monotonic(),
        wait_quiet_s=wait_quiet_s,
    )
    runs = Mock(side_effect=[*payloads, KeyboardInterrupt])
    progress = ProgressLine(None, n_replicates)
    return collect_replicates(
        cast("RunConfig", config), runs, complain, "a test", progress, group="llama", budget_s=budget_s
    )


def test_time_ends_what_has_enough_replicates() -> None:
    """Without any time there are the fewest that say anything, and nobody complains."""
    found = collected(*(payload(0) for _ in range(9)), budget_s=0.0)
    assert (len(found.payloads), found.complaint, found.broken_off_by) == (MIN_SAMPLES, None, None)


def test_what_was_measured_before_an_interruption_counts() -> None:
    """Where enough were valid by then there is no complaint; else the interruption is the reason, whoever competed."""
    found = {n: collected(*(payload(0) for _ in range(n)), payload(100)) for n in (0, 1, MIN_SAMPLES)}
    told = "interrupted after {} of 10 replicates; run again".format
    assert {n: each.complaint for n, each in found.items()} == {0: told(0), 1: told(1), MIN_SAMPLES: None}
    assert {n: len(each.payloads) for n, each in found.items()} == {n: n for n in found}
    assert all(isinstance(each.broken_off_by, KeyboardInterrupt) for each in found.values())
    assert collected().states == ()


def test_what_was_left_out_is_shown_where_too_few_were_valid() -> None:
    """Where enough are valid nothing else is shown; what competed from the beginning is noted once."""
    busy = [payload(100) for _ in range(4)]
    found = collected(*busy, n_replicates=4)
    assert (found.payloads, found.shown_payloads, found.n_discarded) == ((), tuple(busy), 4)
    (note,) = found.notes
    assert note.startswith("the machine was busy from the beginning: somebody else was at work; others take 1 %")
    late = collected(payload(0), payload(100), payload(100), payload(0), payload(0), n_replicates=3)
    assert (late.notes, late.rough_payloads, len(late.shown_payloads), late.n_discarded) == ((), (), 3, 2)


def test_quiet_is_waited_for_once() -> None:
    found = collected(*(payload(100) for _ in range(6)), n_replicates=4, wait_quiet_s=30.0)
    assert (len(found.shown_payloads), found.n_discarded, len(found.notes)) == (4, 6, 1)
    assert found.complaint == "somebody else was at work in 4 of 4 replicates; free the machine and run again"
    again = collected(payload(100), payload(100), *(payload(0) for _ in range(4)), n_replicates=4, wait_quiet_s=30.0)
    assert (len(again.payloads), again.complaint, again.n_discarded) == (4, None, 2)
