"""What is run for which kind, with workers that answer from a stored record."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from perfsuite.device.profile import find_profile
from perfsuite.errors import MeasurementError, NativeBuildError
from perfsuite.expectation.llama_workload import llama_workload
from perfsuite.experiments.fidelity.experiment import FidelityRequest, record_fidelity
from perfsuite.experiments.fidelity.scored_run import FidelityKind, FidelityRun
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.board.protocol import BoardFacts
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import DevicesPlan, DuplicationPlan, EngineDuplicationPlan, LlamaPlan, Plan, UprobePlan
from perfsuite.measure.schedule import Rule, others_complaint, waiting_complaint
from perfsuite.records.call_trace import CallTrace
from perfsuite.records.events import EngineRecord
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import Weights, resolve
from tests.conftest import STORED_MODEL
from tests.synthetic_fidelity import duplication, trace_of
from tests.synthetic_opencl_backend import opencl_device

BACKEND = OpenClBackend(
    library=Path("/backend.so"),
    device=opencl_device(),
    compatibility_layer=Path("/compat.so"),
    tracing_layer=Path("/layer.so"),
    settings={"A_SETTING": "1"},
)
TRACER = {"LD_PRELOAD": "/tracer.so", "PERFSUITE_PHASE_TRACE": "/calls"}


@dataclass
class Workers:
    record: EngineRecord
    errors: dict[type, Exception] = field(default_factory=dict)
    plans: list[Plan] = field(default_factory=list)
    environments: list[dict[str, str]] = field(default_factory=list)
    complaints: list[Any] = field(default_factory=list)
    is_local: bool = True
    #: What finds the tracer.
    instruments: Any = field(default_factory=lambda: SimpleNamespace(phase_tracer=lambda engine: Path("tracer.so")))

    def facts(self) -> BoardFacts:
        return LocalBoard(cache_dir=Path("/cache")).facts()

    def place_weights(self, weights: Weights) -> Path:
        return Path("weights.gguf")

    @property
    def types(self) -> list[type]:
        return [type(plan) for plan in self.plans]

    def run(
        self, plan: Plan, rule: Rule | None = None, *, extra_environment: Mapping[str, str], **_: Any
    ) -> dict[str, Any]:
        self.plans.append(plan)
        self.environments.append(dict(extra_environment))
        self.complaints.append(rule.complain if rule else None)
        if type(plan) in self.errors:
            raise self.errors[type(plan)]
        if isinstance(plan, DevicesPlan):
            return {"chosen": BACKEND.device.to_plain()}
        if isinstance(plan, DuplicationPlan):
            return {"kernels": [duplication(case_id).to_plain() for case_id in plan.case_ids]}
        if isinstance(plan, EngineDuplicationPlan):
            return {"kernels": [duplication("kernel/engine/decode/k/8").to_plain()]}
        return {"engine": self.record.to_plain(), "rings": rings_of(trace_of(self.record))}


def rings_of(trace: CallTrace) -> dict[str, list[bytes]]:
    """Return what the kernel would have written of the calls of a trace."""
    rings: dict[str, list[bytes]] = {}
    for call in trace.calls:
        ring = rings.setdefault(call.function.value, [b"", b""])
        for place, at_ns in enumerate((call.entry_ns, call.exit_ns)):
            ring[place] += struct.pack("<IHHQQ", 9, 2, 24, 77, at_ns)
    return rings


@pytest.fixture
def workers(stored_record: EngineRecord, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Workers:
    found = Workers(record=stored_record)
    replaced = {
        "run_undisturbed": lambda board, *asked, **settings: board.run(*asked, **settings),
        "tracer_environment": lambda *_: TRACER,
        "N_REPETITIONS": 1,  # that of the stored record: what a plan asks for is what must come
        "read_trace": lambda _: with_warm_up(stored_record),
    }
    for name, replacement in replaced.items():
        monkeypatch.setattr(f"perfsuite.experiments.fidelity.experiment.{name}", replacement)
    return found


def with_warm_up(record: EngineRecord) -> Any:
    """Return a trace that begins with the repetition's first two evaluations, as a warm-up does."""
    trace = trace_of(record)
    once = trace_of(replace(record, spans=tuple(each for each in record.spans[1:9])), shift_ns=-(10**12))
    return replace(trace, calls=(*once.calls, *trace.calls))


def request(board: Any, folder: Path, *kinds: FidelityKind, **changed: Any) -> FidelityRequest:
    weights = resolve(STORED_MODEL, cache_dir=folder)
    asked = FidelityRequest(
        profile=find_profile("host"),
        board=board,
        workload=llama_workload(weights, find_scenario("siso"), flash_attn=True),
        log_dir=folder / "logs",
        n_threads=2,
        opencl_platform="A platform",
        kinds=frozenset(kinds or FidelityKind),
        case_ids=("kernel/add/count1048576/f32", "kernel/add/count147456/f32"),
        n_processes=2,
    )
    return replace(asked, **changed)


def recorded(asked: FidelityRequest) -> FidelityRun:
    return record_fidelity(asked, lambda _: None)


def names(run: FidelityRun, kind: FidelityKind) -> list[str]:
    return [row.name for row in run.of(kind)]


def test_every_kind_is_measured(workers: Workers, tmp_path: Path) -> None:
    """Processes of the interposed tracer come first, then those with probes, then the kernels."""
    run = recorded(request(workers, tmp_path))
    assert workers.types == [*[LlamaPlan] * 2, *[UprobePlan] * 2, DevicesPlan, DuplicationPlan]
    phases = ["end_to_end", "prefill", "decode", "embedding", "copy", "softmax", "sampling"]
    assert names(run, FidelityKind.PHASES)[:7] == phases
    assert names(run, FidelityKind.OPERATORS) == ["prefill", "prefill/graph", "decode", "decode/graph"]
    assert names(run, FidelityKind.KERNELS) == ["kernel/add/count1048576/f32", "kernel/add/count147456/f32"]
    assert (run.device, run.platform, run.problems) == ("host", "A device (A platform 1.2)", ())
    assert run.conditions["uprobes"] == "used"
    assert {"governor", "clocks"} <= set(run.conditions)
    probed = [row for row in run.rows if row.ground_truth == "uprobes"]  # a trap takes microseconds
    assert {"end_to_end/uprobes", "prefill/uprobes", "decode/uprobes"} <= {row.name for row in probed}
    assert all((row.ground_truth_ns or 0) >= 100_000 for row in probed)


@pytest.mark.parametrize(
    ("kind", "changed", "types"),
    [
        (FidelityKind.OPERATORS, {}, [LlamaPlan] * 2),
        (FidelityKind.KERNELS, {}, [DevicesPlan, DuplicationPlan]),
        (FidelityKind.PHASES, {"with_uprobes": False}, [LlamaPlan] * 2),
        (FidelityKind.KERNELS, {"opencl": BACKEND, "with_engine_kernels": False, "case_ids": ()}, []),
    ],
    ids=["operators", "kernels", "without probes", "without kernels"],
)
def test_only_what_is_asked_for_is_run(
    kind: FidelityKind, changed: dict[str, Any], types: list[type], workers: Workers, tmp_path: Path
) -> None:
    run = recorded(request(workers, tmp_path, kind, **changed))
    assert workers.types == types
    assert {row.kind for row in run.rows} <= {kind}


def test_the_tracer_is_preloaded_where_it_is_asked_for(workers: Workers, tmp_path: Path) -> None:
    recorded(request(workers, tmp_path, FidelityKind.PHASES, inject_phases=("decode",), inject_ratio=0.05))
    assert workers.environments == [TRACER] * 2 + [{}] * 2
    plans = [plan for plan in workers.plans if isinstance(plan, LlamaPlan)]
    assert len({plan.layout_seed for plan in plans}) == 2
    assert {(plan.inject_phases, plan.inject_phase_ratio) for plan in plans} == {(("decode",), 0.05)}


def test_the_engines_kernels_run_under_the_layer(workers: Workers, tmp_path: Path) -> None:
    """On the OpenCL backend they follow the suite's own, with the layer's log in a folder of its own."""
    run = recorded(request(workers, tmp_path, FidelityKind.KERNELS, opencl=BACKEND))
    plan, environment = workers.plans[-1], workers.environments[-1]
    assert isinstance(plan, EngineDuplicationPlan)
    assert (plan.layer_library, plan.phases) == ("/layer.so", ("prefill", "decode"))
    assert plan.llama.backend_library == "/backend.so"
    assert environment["OPENCL_LAYERS"] == "/compat.so:/layer.so"
    assert environment["PERFSUITE_OPENCL_LOG"] == plan.log_dir
    assert environment["A_SETTING"] == "1"
    assert names(run, FidelityKind.KERNELS)[-1] == "kernel/engine/decode/k/8"


def test_an_opencl_runtime_is_disturbed_by_others_alone(workers: Workers, tmp_path: Path) -> None:
    """Its own threads wait for each other; the engine's on a processor are as many as there are processors."""
    recorded(request(workers, tmp_path, FidelityKind.KERNELS, opencl=BACKEND))
    recorded(request(workers, tmp_path, FidelityKind.PHASES))
    recorded(request(workers, tmp_path, FidelityKind.PHASES, opencl=BACKEND))
    kernels, phases = [None, *[others_complaint] * 2], [*[waiting_complaint] * 4, *[others_complaint] * 4]
    assert workers.complaints == kernels + phases


def test_what_cannot_be_measured_is_a_problem(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other parts are measured all the same, and the reason is reported with the part's name."""
    disturbed = MeasurementError("llama: disturbed in each of 3 tries")
    workers.errors = {LlamaPlan: disturbed, DuplicationPlan: MeasurementError("no memory")}
    run = recorded(request(workers, tmp_path, opencl=BACKEND))
    assert run.problems == ("phases: llama: disturbed in each of 3 tries", "kernels: no memory")
    assert names(run, FidelityKind.KERNELS) == ["kernel/engine/decode/k/8"]
    assert names(run, FidelityKind.OPERATORS) == []
    workers.plans.clear()
    failing = Mock(side_effect=NativeBuildError("phase_tracer.c: does not build"))
    monkeypatch.setattr("perfsuite.experiments.fidelity.experiment.tracer_environment", failing)
    run = recorded(request(workers, tmp_path, FidelityKind.OPERATORS))
    assert (run.problems, workers.plans) == (("phases: phase_tracer.c: does not build",), [])


def test_probes_that_are_not_allowed_are_a_condition(workers: Workers, tmp_path: Path) -> None:
    workers.errors = {UprobePlan: MeasurementError("uprobes: it needs root or CAP_PERFMON")}
    run = recorded(request(workers, tmp_path, FidelityKind.PHASES))
    assert run.problems == ()
    assert run.conditions["uprobes"] == "not used: uprobes: it needs root or CAP_PERFMON"
    assert {row.ground_truth for row in run.rows} == {"interposed"}
