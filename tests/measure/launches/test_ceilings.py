"""Ceilings by launches, of devices that refuse what they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import OpenClError
from perfsuite.expectation.roofline.ceiling import Ceiling
from perfsuite.measure.launches.ceilings import opencl_ceilings
from perfsuite.measure.launches.plan import LaunchesPlan, StepKind
from perfsuite.measure.launches.session import JudgedOutputs, LaunchSession
from perfsuite.measure.opencl_ceiling_work import standard_working_sets
from perfsuite.measure.plan import OpenClCeilingsPlan, Plan

from .conftest import DEVICE, LIMITS

KIB, MIB, GIB = 2**10, 2**20, 2**30
PLAN = OpenClCeilingsPlan(platform=None, budget_ms=100, log_dir="/nowhere")


class Refusing:
    """A worker on a device that has so much memory at most, and runs no kernel."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.asked_bytes: list[int] = []

    def run(self, plan: Plan) -> Mapping[str, Any]:
        assert isinstance(plan, LaunchesPlan)
        assert [step.kind for step in plan.steps[:-1]] == [StepKind.OUTPUT] * (len(plan.steps) - 1)
        rounds = plan.steps[-1]
        memory = [each.n_bytes for place in rounds.launches for each in plan.launches[place].contents]
        self.asked_bytes += memory
        is_memory = bool(memory) and memory[0] > self.most_bytes
        refused = {"refused": "out of memory" if is_memory else "no kernel today", "is_memory": is_memory}
        answers = [{"refused": "no kernel today", "is_memory": False} for _ in plan.steps[:-1]]
        return {"steps": [*answers, {"ways": [refused] * len(rounds.launches)}], "contention": {"wall_ns": 1}}

    def session(self, tmp_path: Path) -> LaunchSession:
        return LaunchSession(
            device=replace(DEVICE, global_memory_bytes=8 << 20),
            limits=LIMITS,
            run=self.run,
            outputs=JudgedOutputs(),
            read_there=Path.read_bytes,
            log_dir=tmp_path,
            cache_dir="/board",
        )


def test_half_of_refused_memory_is_tried(tmp_path: Path) -> None:
    device = Refusing(300 * KIB)
    payload = opencl_ceilings(PLAN, device.session(tmp_path))
    assert device.asked_bytes == [1024 * KIB, 512 * KIB, 256 * KIB]
    found = [Ceiling.from_plain(each) for each in payload["ceilings"]]
    missing = {(each.kind, each.working_set_bytes): each.missing for each in found}
    assert len(missing) == 3 * 3 + 3
    assert missing["copy", 1024 * KIB] == f"the device gave {256 * KIB} bytes of memory, {1024 * KIB} are needed"
    assert missing["copy", 256 * KIB] == missing["fp32", None] == missing["int8", None] == "no kernel today"
    assert missing["f16", None] == "the device has no cl_khr_fp16"
    assert payload["contention"] == {"wall_ns": 1}


def test_a_device_without_memory_is_told(tmp_path: Path) -> None:
    with pytest.raises(OpenClError, match=r"^the device gives no memory: out of memory$"):
        opencl_ceilings(PLAN, Refusing(0).session(tmp_path), working_sets_bytes=(256,))


@pytest.mark.parametrize(
    ("global_bytes", "allocation_bytes", "last"),
    [
        (24 * GIB, 12 * GIB, (64 * MIB, 256 * MIB, 512 * MIB)),
        (2 * GIB, 1 * GIB, (16 * MIB, 64 * MIB, 256 * MIB)),
        (24 * GIB, 100 * MIB + 1, (16 * MIB, 64 * MIB, 100 * MIB)),
        (MIB // 4, MIB, (64 * KIB,)),
    ],
)
def test_the_ladder_ends_where_memory_does(global_bytes: int, allocation_bytes: int, last: tuple[int, ...]) -> None:
    """Working sets are powers of four from 64 KiB to 512 MiB, an eighth of the memory, or the largest allocation."""
    sets = standard_working_sets(replace(DEVICE, global_memory_bytes=global_bytes), allocation_bytes)
    assert sets[:3] == (64 * KIB, 256 * KIB, 1 * MIB)[: len(sets)]
    assert sets[-3:] == last
