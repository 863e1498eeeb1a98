"""What a board was like while something ran on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.machine import Conditions
from perfsuite.device.stability import sampler
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.watching import Watched
from perfsuite.measure.plan import KernelPlan, TurnsPlan
from perfsuite.testing.workers import replace_turns, replace_workers
from tests.sys_trees import plant, put

from .conftest import ANY, LLAMA

KERNELS = KernelPlan(
    case_ids=(),
    platform=None,
    n_repetitions=1,
    budget_ns=7_000_000_000,
    seed=0,
    log_dir="/log",
    n_threads=1,
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An Orange Pi, whose files are sampled in place of this machine's, and whose clock drops while workers run."""
    tree = plant("orangepi5", tmp_path / "board")
    sample = sampler.sampling
    monkeypatch.setattr(sampler, "sampling", lambda **options: sample(tree, **options))

    def worker(*_: object, **__: object) -> dict[str, Any]:
        put(tree, "sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq", "1200000")
        put(tree, "sys/class/thermal/cooling_device1/cur_state", "3")
        return {"worker": "done"}

    replace_workers(monkeypatch, worker)
    replace_turns(monkeypatch, lambda *_, **__: (worker(), worker()))
    return tree


@pytest.fixture
def board(root: Path, tmp_path: Path) -> LocalBoard:
    return LocalBoard(cache_dir=tmp_path, conditions=Conditions(processors=(4, 5)))


def is_dropped(payload: Mapping[str, Any]) -> bool:
    seen = Watched.of(payload)
    assert payload["worker"] == "done"
    assert (seen.least_cpu_mhz, seen.most_celsius is not None) == (1200.0, True)
    return (seen.most_cpu_mhz or 0.0) > 1200.0 and seen.was_throttled is True


def test_replicates_of_the_engine_and_of_kernels_are_watched(board: LocalBoard, root: Path) -> None:
    for plan in (LLAMA, KERNELS):
        plant("orangepi5", root)
        assert is_dropped(board.run(plan))


def test_both_sides_of_a_pair_are_watched(board: LocalBoard) -> None:
    old, new = board.run_in_turns((TurnsPlan(llama=LLAMA), TurnsPlan(llama=LLAMA)), n_turns=4, leader=0)
    assert is_dropped(old)
    assert old == new


def test_what_only_asks_is_not_watched(board: LocalBoard) -> None:
    """A list of devices costs no look."""
    assert board.run(ANY) == {"worker": "done"}
