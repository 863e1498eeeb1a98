"""The sweep over layers offloaded, on made-up processes and on the real engine."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.experiments.offload.sweep import OffloadSweep, measure_offload
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.engine import find_engine
from perfsuite.measure.llama_plan import llama_plan
from perfsuite.measure.opencl_backend import OpenClBackend, set_up_opencl
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import EngineRecord, Phase
from perfsuite.testing.workers import replace_workers
from perfsuite.trace.placement import PROCESSOR_BACKEND
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import materialize, resolve
from tests.conftest import STORED_MODEL
from tests.synthetic_opencl_backend import CONTENDED, QUIET, opencl_backend, opencl_plan
from tests.synthetic_splits import CARD, GATHER, PROCESSOR, layer, node, split_record

HOST = find_profile("host")


@dataclass
class Processes:
    plans: list[LlamaPlan] = field(default_factory=list)
    #: Contention of the next timed processes; none where there are no more.
    disturbed: list[bool] = field(default_factory=list)
    n_dropped: int = 0

    def run(self, plan: LlamaPlan, *, extra_environment: Mapping[str, str], **_: object) -> dict[str, Any]:
        """Return the record of a process that takes longer with each layer, or its splits."""
        assert extra_environment["GGML_OPENCL_PLATFORM"] == "A platform"
        self.plans.append(plan)
        n = plan.n_gpu_layers
        parts = [(PROCESSOR, (node(*GATHER), *layer(0))), *((CARD, layer(each)) for each in range(1, n + 1))]
        record = split_record([(Phase.PREFILL, parts), (Phase.DECODE, parts)], n_dropped=self.n_dropped)
        if plan.recorder == "none":
            record = self._timed(record, n)
        is_disturbed = plan.recorder == "none" and bool(self.disturbed) and self.disturbed.pop(0)
        return {"engine": record.to_plain(), "contention": CONTENDED if is_disturbed else QUIET}

    @staticmethod
    def _timed(record: EngineRecord, n: int) -> EngineRecord:
        spans = (replace(each, end_ns=each.start_ns + 100_000 * (n + 1)) for each in record.spans)
        return replace(record, spans=tuple(spans), splits=b"")


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    found = Processes()
    replace_workers(monkeypatch, found.run)
    return found


def swept(folder: Path, *, n_rounds: int = 2, layers: tuple[int, ...] = (0, 3, 1)) -> OffloadSweep:
    return measure_offload(
        opencl_plan(folder),
        opencl_backend(folder),
        HOST,
        LocalBoard(cache_dir=folder),
        layers=layers,
        n_rounds=n_rounds,
        order=random.Random(1),
    )


def test_each_number_of_layers_is_seen_once_and_timed_in_turns(processes: Processes, tmp_path: Path) -> None:
    sweep = swept(tmp_path)
    assert [(each.recorder, each.n_gpu_layers) for each in processes.plans[:3]] == [("splits", n) for n in (0, 3, 1)]
    timed = processes.plans[3:]
    assert {each.recorder for each in timed} == {"none"}
    assert [sorted(each.n_gpu_layers for each in timed[at : at + 3]) for at in (0, 3)] == [[0, 1, 3]] * 2
    assert len({each.layout_seed for each in timed}) == 6
    assert [point.n_gpu_layers for point in sweep.points] == [0, 3, 1]
    assert sweep.engine_version == "llama 1, ggml 1"


def test_speeds_and_splits_are_those_of_their_number_of_layers(processes: Processes, tmp_path: Path) -> None:
    """A prefill of 10 tokens in 0.4 ms is 25000 tokens/s, and three layers more are three splits more."""
    sweep = swept(tmp_path)
    point, (fastest, _) = sweep.points[1], sweep.fastest(Phase.DECODE)
    prefill, decode = point.speeds[Phase.PREFILL], point.speeds[Phase.DECODE]
    assert (prefill.samples_tokens_per_s, decode.median_tokens_per_s) == ((25000.0, 25000.0), 2500.0)
    assert (decode.least_tokens_per_s, decode.most_tokens_per_s) == (2500.0, 2500.0)
    assert [each.phase for each in point.placements] == [Phase.PREFILL, Phase.DECODE]
    assert point.placements[1].splits == (PROCESSOR, CARD, CARD, CARD)
    assert point.n_disturbed == 0
    assert fastest.n_gpu_layers == 0
    assert set(point.speeds) == {Phase.PREFILL, Phase.DECODE}


def test_disturbed_processes_are_left_out_and_made_up_for(processes: Processes, tmp_path: Path) -> None:
    processes.disturbed = [True, False]
    (point,) = swept(tmp_path, layers=(2,)).points
    assert len(point.speeds[Phase.DECODE].samples_tokens_per_s) == 2
    assert (point.n_disturbed, len(processes.plans)) == (1, 4)
    processes.disturbed = [True] * 10
    with pytest.raises(MeasurementError, match=r"2 layers on the device: none of 4 processes .* other processes took"):
        swept(tmp_path, layers=(2,))


def test_lost_splits_are_refused(processes: Processes, tmp_path: Path) -> None:
    processes.n_dropped = 7
    with pytest.raises(MeasurementError, match="7 splits found no room"):
        swept(tmp_path)


# ---- the real engine ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def backend() -> OpenClBackend:
    """Return the engine's backend on the processor's runtime; ``tools/opencl_backend.sh`` makes it."""
    return set_up_opencl(find_engine(), "Intel", Path(platformdirs.user_cache_dir("perfsuite")))


@pytest.mark.long
def test_the_real_engine_moves_layer_by_layer(backend: OpenClBackend, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each layer more leaves fewer operators to the processor, down to the gather, which the device refuses in Q8_0."""
    folder = tmp_path_factory.mktemp("models")
    weights = resolve(STORED_MODEL, cache_dir=folder)
    plan = llama_plan(
        llama_workload(weights, find_scenario("p8-g2"), flash_attn=False),
        find_engine(),
        gguf_path=materialize(weights, cache_dir=folder),
        cache_dir=tmp_path_factory.getbasetemp() / "engine-cache",
        n_threads=1,
        opencl=backend,
    )
    tolerant = replace(HOST, max_others_ratio=1.0)
    board = LocalBoard(cache_dir=folder)
    sweep = measure_offload(plan, backend, tolerant, board, layers=(0, 1, 3), n_rounds=1)
    decodes = [point.placements[1] for point in sweep.points]
    assert [each.splits for each in decodes] == [("CPU",), *[("CPU", "OpenCL")] * 2]
    totals = [sum(share.n_operators for share in each.shares) for each in decodes]
    on_processor = [each.shares[0].n_operators for each in decodes]
    assert len(set(totals)) == 1
    assert on_processor[0] == totals[0]
    assert on_processor == sorted(set(on_processor), reverse=True)
    (last,) = decodes[-1].on_processor
    assert decodes[-1].shares[0].backend == PROCESSOR_BACKEND
    assert (last.role, last.op, last.refused_by) == ("embd", "GET_ROWS", ("GPUOpenCL",))
    assert all(speed.median_tokens_per_s > 0 for point in sweep.points for speed in point.speeds.values())
