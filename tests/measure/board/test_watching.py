"""What a board was like while something ran on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perfsuite.device.machine import Conditions
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.watching import Watched
from perfsuite.measure.launch import READY_MARK
from perfsuite.measure.plan import IndependentPlan, TurnsPlan, dump_record
from tests.sys_trees import plant, put

from ..conftest import Child
from .conftest import LLAMA


@pytest.fixture
def board(tmp_path: Path, child: Child) -> Iterator[LocalBoard]:
    """This machine, with the files of an Orange Pi, whose clock drops while workers run."""
    tree = plant("orangepi5", tmp_path / "board")
    for task in ("llama", "turns", "independent"):
        put(tmp_path, task, dump_record(task, {"worker": "done"}))
    child(
        f"echo 1200000 > {tree}/sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq; "
        f"echo 3 > {tree}/sys/class/thermal/cooling_device1/cur_state; task=llama; "
        "! grep -q independent $plan || task=independent; "
        f"ready() {{ echo {READY_MARK}; }}; "
        "if grep -q turns $plan; then task=turns; ready; while read -r line; do ready; done; fi; "
        f"cp {tmp_path}/$task $record"
    )
    with closing(LocalBoard(cache_dir=tmp_path, conditions=Conditions(processors=(4, 5)), root=tree)) as board:
        yield board


def is_dropped(payload: Mapping[str, Any]) -> bool:
    seen = Watched.of(payload)
    assert payload["worker"] == "done"
    assert (seen.least_cpu_mhz, seen.most_celsius is not None) == (1200.0, True)
    return (seen.most_cpu_mhz or 0.0) > 1200.0 and seen.was_throttled is True


def test_a_replicate_is_watched(board: LocalBoard) -> None:
    assert is_dropped(board.run(LLAMA))


def test_both_sides_of_a_pair_are_watched(board: LocalBoard) -> None:
    old, new = board.run_in_turns((TurnsPlan(llama=LLAMA), TurnsPlan(llama=LLAMA)), n_turns=4, leader=0)
    assert is_dropped(old)
    assert old == new


def test_what_measures_no_case_is_not_watched(board: LocalBoard) -> None:
    assert board.run(IndependentPlan(n_threads=1, working_set_bytes=1, budget_ms=1)) == {"worker": "done"}
