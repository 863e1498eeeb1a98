"""The suite's own kernels by launches, without a device."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.errors import MeasurementError, OpenClError
from perfsuite.measure.engine_store import KERNELS_DIR
from perfsuite.measure.kernel_launches import CPU_TUNING, GPU_TUNING
from perfsuite.measure.kernel_record import KernelRecord
from perfsuite.measure.launches.own_kernels import OwnKernels
from perfsuite.measure.launches.plan import StepKind
from perfsuite.measure.launches.timing import drawn_leaders
from perfsuite.measure.plan import DevicesPlan, DuplicationPlan, KernelPlan, Plan
from perfsuite.records.duplication import N_LEAST, KernelDuplication

from .conftest import DEVICE, FakeWorker

CASES = ("kernel/gemv_q8_0/m1536-k576/q8_0", "kernel/add/count147456/f32")

PLAN = KernelPlan(
    case_ids=CASES,
    platform=None,
    n_repetitions=7,
    budget_ns=9,
    seed=0,
    log_dir="/logs",
    n_threads=3,
)
DUPLICATION = DuplicationPlan(case_ids=CASES, platform=None, n_rounds=2, budget_ns=1, seed=0, log_dir="/logs")


def records(payload: dict[str, Any], side: str = "kernels") -> list[KernelRecord]:
    return [KernelRecord.from_plain(each) for each in payload[side]]


def test_kernels_are_recorded(own: OwnKernels, worker: FakeWorker) -> None:
    """A correct kernel has all its launches, and no old side; what was seen beside the worker stays."""
    payload = own.run(PLAN, worker.run)
    assert payload.keys() == {"kernels", "old_kernels", "contention", "peak_rss_bytes", "sentinels", "device_samples"}
    assert (payload["old_kernels"], payload["contention"], payload["peak_rss_bytes"]) == ([], {"wall_ns": 5}, 6)
    assert payload["sentinels"] == {"memory_ns": 3}
    first, second = records(payload)
    assert (first.case_id, second.case_id) == CASES
    assert first.is_correct
    assert 0 < first.error_norm < 1e-7
    assert (len(first.queued_ns), first.durations_ns, second.durations_ns) == (7, (100,) * 7, (101,) * 7)


def test_an_output_that_was_judged_does_not_come_again(own: OwnKernels, worker: FakeWorker) -> None:
    """The second plan names its digest, and what was found then holds; another output is judged anew."""
    first = records(own.run(PLAN, worker.run))
    again = records(own.run(PLAN, worker.run))
    assert [each.error_norm for each in again] == [each.error_norm for each in first]
    known = [step.known_outputs for step in worker.launches[1].steps if step.kind is StepKind.OUTPUT]
    assert [len(each) for each in known] == [1, 1]
    worker.errors = {1: 1.0}
    changed = records(own.run(PLAN, worker.run))
    assert [each.is_correct for each in changed] == [True, False]


@pytest.mark.parametrize("side", [0, 1])
def test_a_wrong_kernel_has_no_times(own: OwnKernels, worker: FakeWorker, side: int) -> None:
    """Too far from the reference, or beyond its output: the deviation is reported, and how fast it was is not."""
    worker.errors = {side: 1.0}
    found = records(own.run(PLAN, worker.run))
    assert [each.is_correct for each in found] == [side != 0, side != 1]
    assert found[side].end_ns == ()
    worker.errors, worker.overrun = {}, {side}
    assert records(own.run(PLAN, worker.run))[side].error_norm == math.inf


def test_old_sources_take_turns_beside_the_present_ones(own: OwnKernels, worker: FakeWorker, tmp_path: Path) -> None:
    """Both have the same buffers, whoever leads; the times of each are its own, and a change of one shows there."""
    for path in KERNELS_DIR.glob("*.cl"):
        (tmp_path / path.name).write_text("// older\n" + path.read_text())
    payload = own.run(replace(PLAN, old_kernels_dir=str(tmp_path), n_rounds=4, order_seed=5), worker.run)
    plan = worker.launches[-1]
    assert [launch.beside for launch in plan.launches] == [None, 0, None, 2]
    assert ["// older" in plan.programs[launch.program].source for launch in plan.launches] == [False, True] * 2
    *outputs, turns = plan.steps
    assert [each.launches for each in outputs] == [(1,), (0,), (3,), (2,)]
    assert (turns.launches, turns.budget_ns) == ((1, 0, 3, 2), 9)
    assert turns.leaders == drawn_leaders(5, n_rounds=4, n_kernels=2)
    assert [each.rounds_ns for each in records(payload)] == [((length,) * 7,) * 4 for length in (100, 102)]
    assert [each.rounds_ns for each in records(payload, "old_kernels")] == [((each,) * 7,) * 4 for each in (101, 103)]
    worker.errors = {3: 1.0}
    payload = own.run(replace(PLAN, old_kernels_dir=str(tmp_path)), worker.run)
    assert [each.is_correct for each in records(payload, "old_kernels")] == [True, False]
    assert records(payload)[1].end_ns == ()


def test_the_device_is_chosen_here(own: OwnKernels, worker: FakeWorker) -> None:
    """Of all that there are, as on this machine, and asked for once; plans carry its place, name and tuning."""
    gpu = replace(DEVICE, platform_index=2, platform_name="Vendor", device_name="a GPU", type="gpu")
    worker.devices = [DEVICE, gpu]
    told = own.run(DevicesPlan(platform=None), worker.run)
    assert told["chosen"] == gpu.to_plain()
    assert len(told["devices"]) == 2
    own.run(PLAN, worker.run)
    own.run(replace(PLAN, platform="portable"), worker.run)
    assert [type(each).__name__ for each in worker.plans] == ["DeviceListPlan", "LaunchesPlan"] * 2
    on_gpu, on_processor = worker.launches
    assert (on_gpu.platform_index, on_gpu.device_name) == (2, "a GPU")
    assert (on_processor.platform_index, on_processor.device_name) == (1, "a processor")
    assert on_gpu.launches[0].local_size == (GPU_TUNING.lanes, GPU_TUNING.rows)
    assert on_processor.launches[0].local_size == (CPU_TUNING.lanes, CPU_TUNING.rows)
    with pytest.raises(OpenClError, match=r"named like 'none', found .*; name one .* or install .* vendor there$"):
        own.run(DevicesPlan(platform="none"), worker.run)


def test_duplicates_are_as_many_as_the_pilot_allows(own: OwnKernels, worker: FakeWorker) -> None:
    """The rounds go through all kernels; of each the base run, the duplicated one and the output are kept."""
    payload = own.run(DUPLICATION, worker.run)
    found = [KernelDuplication.from_plain(each) for each in payload["kernels"]]
    assert payload.keys() == {"kernels", "contention", "device_samples"}
    assert [(each.name, each.n_duplicates, each.n_wanted, each.problem) for each in found] == [
        (case_id, N_LEAST, 1000, None) for case_id in CASES
    ]
    pilot, plan = worker.launches
    assert [step.n_launches for step in pilot.steps] == [10] * 4
    assert [step.launches[0] for step in plan.steps] == [0, 0, 0, 1, 1, 1] * 2 + [0, 1]
    assert [step.n_launches for step in plan.steps[:3]] == [2, 1, 1 + N_LEAST]
    (first, *_), n = found[1].rounds, 1 + N_LEAST
    assert (first.base_ns, first.duplicated_ns, first.base_execution_ns) == (1000, 1000 * n, 101)
    assert (first.duplicates_execution_ns, first.duplicates_occupied_ns) == (101 * n, 1000 * N_LEAST)


def test_duplicates_of_a_wrong_kernel_are_a_problem(own: OwnKernels, worker: FakeWorker) -> None:
    worker.errors = {1: 1.0}
    found = [KernelDuplication.from_plain(each) for each in own.run(DUPLICATION, worker.run)["kernels"]]
    assert found[0].problem is None
    assert (found[1].problem or "").startswith("the kernel computes wrongly: error norm ")


def test_what_is_missing_here_is_one_line(own: OwnKernels) -> None:
    """On this machine an extra brings a driver; on a board its vendor does, as the program there says."""

    def run(_: Plan) -> dict[str, Any]:
        raise MeasurementError("OpenCL: none of libOpenCL.so.1 can be loaded; install a loader")

    with pytest.raises(MeasurementError, match=r"install a loader$"):
        own.run(PLAN, run)
    with pytest.raises(OpenClError, match=r"^OpenCL: no platform has a device.*; (run: pip|install the)"):
        OwnKernels(read_there=Path.read_bytes, cache_dir="/cache").run(PLAN, run)


def test_leaders_are_drawn() -> None:
    leaders = drawn_leaders(3, n_rounds=15, n_kernels=9)
    assert leaders == drawn_leaders(3, n_rounds=15, n_kernels=9) != drawn_leaders(4, n_rounds=15, n_kernels=9)
    for first, second in zip(leaders[::2], leaders[1::2], strict=False):
        assert [1 - leader for leader in first] == list(second)
    assert len(leaders) == 15
    assert len(set(map(sum, leaders))) > 2
