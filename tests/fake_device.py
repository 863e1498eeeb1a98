"""A perf run whose workers are replaced by a stored record, so that nothing is measured."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import duckdb  # noqa: F401 - as scipy
import msgspec
import pytest
import scipy.optimize  # before pytester's runs, which forget modules that cannot be loaded a second time
import scipy.stats  # noqa: F401

import perfsuite.experiments.binding.experiment
import perfsuite.experiments.fidelity.experiment
import perfsuite.experiments.kernels.experiment
import perfsuite.experiments.overhead.experiment
import perfsuite.experiments.own.experiment
import perfsuite.experiments.phases.experiment
import perfsuite.experiments.roofline.experiment
import perfsuite.experiments.run_outputs
import perfsuite.experiments.shapes.experiment
import perfsuite.experiments.tracing.experiment

# What runs of the plugin import on their own they forget again, and what is replaced here would be another copy.
import perfsuite.plugin.hooks
import perfsuite.plugin.run_end
import perfsuite.report.history
import perfsuite.report.page.render  # noqa: F401
from perfsuite.device.stability.sampler import sampled
from perfsuite.errors import MeasurementError
from perfsuite.expectation.llama_workload import LlamaWorkload
from perfsuite.expectation.memory.comparison import MemoryRecord
from perfsuite.experiments.binding.experiment import is_asked
from perfsuite.measure.board import runs as runs_of_boards
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.board.runs import RunRequest
from perfsuite.measure.board.watching import seen_beside
from perfsuite.measure.competition import Competition
from perfsuite.measure.plan import (
    BindingPlan,
    DevicesPlan,
    GraphsPlan,
    IndependentPlan,
    KernelPlan,
    LlamaPlan,
    OpenClCeilingsPlan,
    OverheadPlan,
    Plan,
    ProbePlan,
    TurnsPlan,
)
from perfsuite.option_table import OPTIONS
from perfsuite.records.binding import BindingRecord, Door, Part, PartSpan, Request
from perfsuite.records.events import EngineRecord, Node, Phase, Span
from perfsuite.records.observation import Observation
from perfsuite.records.run_file import RunFile, read_run_file
from perfsuite.testing.workers import replace_turns, replace_workers
from tests.conftest import STORED_MODEL
from tests.fake_opencl import FakeOpenCl, replace_opencl
from tests.synthetic_opencl_backend import opencl_device
from tests.synthetic_roofline import bandwidth_ceiling, compute_ceiling, independent_rate, memory_record

for _plugin in entry_points(group="pytest11"):  # each run loads them all, and labgrid's takes most of a second
    _plugin.load()

#: The competition in a worker that had none.
QUIET = {"wall_ns": 10**9, "running_ns": 2 * 10**9, "waiting_ns": 10**6, "steal_ratio": 0.0, "others_ratio": 0.0}
_CONTENDED = {**QUIET, "waiting_ns": 2 * 10**9}

#: What every probe finds.
CEILINGS = {
    "n_threads": 2,
    "bandwidths": [
        {
            "working_set_bytes": size,
            **dict.fromkeys(("read_bytes_per_s", "copy_bytes_per_s", "triad_bytes_per_s"), rate),
        }
        for size, rate in ((10**6, 4e11), (10**7, 2e11), (10**8, 5e10))
    ],
    "fp32_flops_per_s": 4e11,
    "int8_flops_per_s": 1.6e12,
    "f16_flops_per_s": None,
    "dispatch_ns": 300,
}

#: What a workload of a sweep takes, whatever it is: slower than any ceiling forbids.
_PREFILL_NS, _PREFILL_TOKEN_NS, _DECODE_NS = 10**7, 2 * 10**6, 2 * 10**7

#: What a part of the binding takes, and those that every token has by each door, in their order.
_PART_NS = {
    Part.TOKENIZE: 200_000,
    Part.BATCH: 10_000,
    Part.DECODE: 900_000,
    Part.LOGITS: 100_000,
    Part.SAMPLING: 100_000,
    Part.DETOKENIZE: 50_000,
}
_PARTS = {
    Door.CALLS: (Part.BATCH, Part.DECODE, Part.LOGITS, Part.SAMPLING, Part.DETOKENIZE),
    Door.COMPLETION: (Part.BATCH, Part.DECODE, Part.SAMPLING, Part.DETOKENIZE),
}


@dataclass
class FakeDevice:
    """Answers every plan from stored records, with a little noise from a fixed seed."""

    payload: Mapping[str, Any]
    #: Factors on the time of operators, by role; "" is every operator.
    slowdown: dict[str, float] = field(default_factory=dict)
    #: How much slower each kernel is than its old side, by case id.
    kernel_slowdown: dict[str, float] = field(default_factory=dict)
    #: Whether there are cases of llama-cpp-python, and how much slower each part of it is.
    has_binding: bool = False
    part_slowdown: dict[Part, float] = field(default_factory=dict)
    #: Why the old engine does not run beneath it.
    old_binding_error: str = ""
    #: An operator that the old side of a pair calls by another name.
    renamed_op: str | None = None
    contended: bool = False
    #: What others have of the processors then.
    others_ratio: float = 0.4
    #: Looks at the competition so far, and after how many of them it is over; None never.
    n_looks: int = 0
    n_busy_looks: int | None = None
    opencl_error: Exception | None = None
    wrong_kernels: bool = False
    #: What each replicate's sentinels took; None where workers send none.
    sentinels: Mapping[str, int] | None = None
    #: What the memory of a process reaches, as a share of what was predicted.
    memory_ratio: float = 1.0
    #: Why the processor cannot be surveyed.
    survey_error: Exception | None = None
    #: What NumPy reads, bytes/s.
    numpy_bytes_per_s: float = 4e10
    #: The workloads of sweeps whose memory was asked for.
    remembered: list[str] = field(default_factory=list)
    #: Every plan that was run.
    plans: list[Plan] = field(default_factory=list)
    _random: random.Random = field(default_factory=lambda: random.Random(3))

    def run(self, plan: Plan, **_: object) -> dict[str, Any]:
        if isinstance(plan, GraphsPlan):
            raise MeasurementError("this release of llama.cpp cannot say a graph")
        self.plans.append(plan)
        answers: dict[type, Callable[[Any], dict[str, Any]]] = {
            ProbePlan: self._probes,
            DevicesPlan: self._devices,
            KernelPlan: self._kernels,
            LlamaPlan: self._llama,
            OverheadPlan: self._overhead,
            OpenClCeilingsPlan: self._opencl_ceilings,
            IndependentPlan: self._independent,
        }
        return answers[type(plan)](plan)

    def run_sweep(self, plan: Plan, **_: object) -> dict[str, Any]:
        """Return what a worker would send for a workload of a sweep: phases alone, in times that nothing forbids."""
        self.plans.append(plan)
        assert isinstance(plan, LlamaPlan)
        factor = self.slowdown.get("", 1.0) * self._random.uniform(1.0, 1.001)
        spans = [_span(Phase.PREFILL, (_PREFILL_NS + plan.n_prompt * _PREFILL_TOKEN_NS) * factor)]
        spans += [_span(Phase.DECODE, _DECODE_NS * factor)] * plan.n_gen
        record = replace(EngineRecord.from_plain(self.payload["engine"]), spans=tuple(spans), graphs=(), events=b"")
        return {"engine": record.to_plain(), **self._circumstances()}

    def memory(self, workload: LlamaWorkload, _: LlamaPlan, __: Board) -> MemoryRecord:
        self.remembered.append(workload.prefix)
        usual = memory_record(weights=workload.weights.name, scenario=workload.scenario.name)
        peak_bytes = round(usual.peak.predicted_bytes * self.memory_ratio)
        return replace(usual, timeline=replace(usual.timeline, peak_rss_bytes=peak_bytes))

    def _probes(self, plan: ProbePlan) -> dict[str, Any]:
        if plan.thread_counts:
            return self._survey(plan)
        return {"ceilings": deepcopy(CEILINGS), "contention": dict(QUIET)}

    def _survey(self, plan: ProbePlan) -> dict[str, Any]:
        if self.survey_error:
            raise self.survey_error
        found = []
        for count in sorted({plan.n_threads, *plan.thread_counts}):
            levels = ((10**6, 4e11), (10**7, 5e10))
            found += [bandwidth_ceiling(rate, held, n_threads=count) for held, rate in levels]
            found += [compute_ceiling(4e11, n_threads=count), compute_ceiling(1.6e12, kind="int8", n_threads=count)]
        return {"ceilings": [each.to_plain() for each in found], "contention": dict(QUIET)}

    def _opencl_ceilings(self, plan: OpenClCeilingsPlan) -> dict[str, Any]:
        if self.opencl_error:
            raise MeasurementError(str(self.opencl_error))
        found = [replace(compute_ceiling(1e11, n_threads=None), processor="A device")]
        return {"ceilings": [each.to_plain() for each in found], "contention": dict(QUIET)}

    def _independent(self, plan: IndependentPlan) -> dict[str, Any]:
        rate = independent_rate(n_threads=plan.n_threads, best_per_s=self.numpy_bytes_per_s)
        return {"rates": [rate.to_plain()], "contention": dict(QUIET)}

    def _overhead(self, plan: OverheadPlan) -> dict[str, Any]:
        plain = [1000 + step % 7 for step in range(plan.n_pairs)]
        return {"plain_ns": plain, "recorded_ns": [value + 1 for value in plain], "contention": dict(QUIET)}

    def run_in_turns(self, plans: tuple[TurnsPlan, TurnsPlan], **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        if isinstance(plans[0], BindingPlan):
            if self.old_binding_error:
                raise MeasurementError(self.old_binding_error)
            return self._binding(plans[0], is_new=False), self._binding(plans[1])
        if isinstance(plans[1], BindingPlan):
            return self._turns(plans[0].llama, is_new=False), self._binding(plans[1])
        old, new = (self._turns(plan.llama, is_new=side == 1) for side, plan in enumerate(plans))
        return old, new

    def _turns(self, plan: LlamaPlan, *, is_new: bool) -> dict[str, Any]:
        self.plans.append(TurnsPlan(llama=plan))
        record = EngineRecord.from_plain(self.payload["engine"])
        if not is_new and self.renamed_op:
            record = replace(record, graphs=tuple(_renamed(graph, self.renamed_op) for graph in record.graphs))
        slowed = stretched(record, self.slowdown if is_new else {}, noise=self._random.uniform(1.0, 1.001))
        return {"engine": slowed.to_plain(), "contention": self._contention(), "peak_rss_bytes": 10**8}

    def _binding(self, plan: BindingPlan, *, is_new: bool = True) -> dict[str, Any]:
        """Return what the worker beneath llama-cpp-python would send: a prompt and four tokens by each door."""
        self.plans.append(plan)
        requests = tuple(self._request(door, self.part_slowdown if is_new else {}) for door in Door)
        record = BindingRecord(
            load_ns=round(10**8 * self._random.uniform(1.0, 1.001)), requests=requests, span_cost_ns=500
        )
        engine = {"engine": self.payload["engine"], **self._circumstances()}
        return {"binding": msgspec.to_builtins(record), **engine}

    def _request(self, door: Door, slowdown: Mapping[Part, float]) -> Request:
        now_ns, spans, token_ns = 0, [], []
        for at in range(5):
            for part in (Part.TOKENIZE,)[at:] + _PARTS[door]:
                length_ns = _PART_NS[part] * slowdown.get(part, 1.0) * self._random.uniform(1.0, 1.001)
                spans.append(PartSpan(part=part, start_ns=now_ns, end_ns=now_ns + round(length_ns)))
                now_ns = spans[-1].end_ns + round(10**4 * self._random.uniform(1.0, 1.001))
            token_ns.append(now_ns)
        return Request(door=door, start_ns=0, token_ns=tuple(token_ns), spans=tuple(spans))

    def competition(self) -> Competition:
        """Return who competes: a compiler, until it has been looked at as often as `n_busy_looks` says."""
        self.n_looks += 1
        if self.n_busy_looks is not None and self.n_looks > self.n_busy_looks:
            self.contended = False
        return Competition(others_ratio=self.others_ratio if self.contended else 0.0, processors={"cc1plus": 1.9})

    def _contention(self) -> dict[str, Any]:
        return {**_CONTENDED, "others_ratio": self.others_ratio} if self.contended else dict(QUIET)

    def _devices(self, _: DevicesPlan) -> dict[str, Any]:
        if self.opencl_error:
            raise self.opencl_error
        device = opencl_device().to_plain()
        return {"chosen": device, "devices": [device]}

    def _kernels(self, plan: KernelPlan) -> dict[str, Any]:
        slowdowns = {case_id: self.kernel_slowdown.get(case_id, 1.0) for case_id in plan.case_ids}
        new = [self._kernel(case_id, slowdown, plan.n_rounds) for case_id, slowdown in slowdowns.items()]
        old = [self._kernel(case_id, 1.0, plan.n_rounds) for case_id in plan.case_ids if plan.old_kernels_dir]
        return {"kernels": new, "old_kernels": old, **self._circumstances()}

    def _kernel(self, case_id: str, factor: float, n_rounds: int) -> dict[str, Any]:
        begins_ns = [launch * 10**10 for launch in range(5 * n_rounds)]
        return {
            "case_id": case_id,
            "error_norm": 1.0 if self.wrong_kernels else 1e-7,
            "tolerance": 1e-5,
            "queued_ns": [at + 1 for at in begins_ns],
            "submit_ns": [at + 2 for at in begins_ns],
            "start_ns": [at + 3 for at in begins_ns],
            "end_ns": [at + int(10**8 * factor * self._random.uniform(1.0, 1.001)) for at in begins_ns],
            "n_per_round": 5,
        }

    def _llama(self, _: LlamaPlan) -> dict[str, Any]:
        record = EngineRecord.from_plain(self.payload["engine"])
        slowed = stretched(record, self.slowdown, noise=self._random.uniform(1.0, 1.001))
        return {"engine": slowed.to_plain(), **self._circumstances()}

    def _circumstances(self) -> dict[str, Any]:
        sentinels = {"sentinels": dict(self.sentinels)} if self.sentinels else {}
        return {"contention": self._contention(), "peak_rss_bytes": 10**8, **sentinels}


def _span(phase: Phase, duration_ns: float) -> Span:
    return Span(phase=phase, repetition=0, token=0, n_tokens=1, start_ns=1, end_ns=1 + round(duration_ns))


def _renamed(graph: tuple[Node, ...], op: str) -> tuple[Node, ...]:
    """Return a graph whose nodes of one operator have another one, under an anonymous name."""
    return tuple(
        replace(node, op="ANOTHER", tensor=replace(node.tensor, name="node_1")) if node.op == op else node
        for node in graph
    )


def stretched(record: EngineRecord, slowdown: Mapping[str, float], noise: float = 1.0) -> EngineRecord:
    """Lengthen the operators of some roles, and the spans that hold them, by a factor."""
    from perfsuite.records.engine_columns import evaluations_of
    from perfsuite.testing.engine_traces import evaluation
    from perfsuite.trace.operators import timed_operators

    operators = [timed_operators(graph) for graph in record.graphs]
    found = evaluations_of(record)
    delay, events, shifts = 0, [], []
    for number, (graph, launch, entry) in enumerate(
        zip(found.graph.tolist(), found.launch_ns.tolist(), found.first_start_ns.tolist(), strict=True)
    ):
        begin, at, ends = delay, found.ends(number), []
        for operator, start, end in zip(operators[graph], found.starts_ns[at], found.ends_ns[at], strict=True):
            factor = noise * slowdown.get(operator.role, slowdown.get("", 1.0))
            delay += round(int(end - start) * (factor - 1.0))
            ends.append(int(end) + delay)
        shifts.append((launch, begin, delay))
        first_start_ns = None if entry < 0 else entry + begin
        events.append(evaluation(launch + begin, *ends, graph=graph, first_start_ns=first_start_ns))
    after_ns = round((noise - 1.0) * 1e4)  # so that what no operator makes up scatters, too
    shifted = (_shifted(span, shifts) for span in record.spans)
    spans = tuple(replace(span, end_ns=span.end_ns + after_ns) for span in shifted)
    return replace(record, spans=spans, events=b"".join(events))


def _shifted(span: Span, shifts: list[tuple[int, int, int]]) -> Span:
    def delay_at(time_ns: int) -> int:
        return next((after for launch, _, after in reversed(shifts) if launch < time_ns), 0)

    return replace(span, start_ns=span.start_ns + delay_at(span.start_ns), end_ns=span.end_ns + delay_at(span.end_ns))


def _empty_page(_: RunFile, __: Observation, run_path: Path) -> Path:
    page = run_path.parent / "report.html"
    page.touch()
    return page


@pytest.fixture
def real_outputs() -> None:
    """Let runs on a fake device write the report and the history that they would write, which takes a while."""


@pytest.fixture
def fake_device(
    stored_payload: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> FakeDevice:
    """Replace every worker by a `FakeDevice`, the caches by a temporary folder, and the report by an empty page."""
    device = FakeDevice(payload=stored_payload)
    monkeypatch.setitem(OPTIONS["--perf-calibrate"], "default", "off")
    replace_workers(monkeypatch, device.run)
    replace_turns(monkeypatch, device.run_in_turns)
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.materialize", lambda weights, cache_dir: tmp_path / "weights.gguf"
    )
    monkeypatch.setattr("perfsuite.measure.board.protocol.Board.competition", lambda _: device.competition())
    monkeypatch.setattr(
        "perfsuite.experiments.binding.experiment.is_asked", lambda config: device.has_binding and is_asked(config)
    )
    _replace_sweeps(monkeypatch, device, tmp_path)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    if "real_outputs" not in request.fixturenames:
        monkeypatch.setattr("perfsuite.experiments.run_outputs.write_report", _empty_page)
        monkeypatch.setattr("perfsuite.experiments.run_outputs.append_history", lambda run, history_dir: history_dir)
    return device


def watch_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs that are measured have samples, beside what answers them: of the files below a root."""
    run_plan, run_turns = runs_of_boards.run_plan, runs_of_boards.run_turns

    def seen() -> dict[str, Any]:
        found = sampled(root)
        for _ in range(2):
            found.take_all()
        return seen_beside(found)

    def run(board: Board, plan: Plan, request: RunRequest) -> dict[str, Any]:
        beside = seen() if isinstance(plan, runs_of_boards.WATCHED) else {}
        return {**run_plan(board, plan, request), **beside}

    def turns(*arguments: Any, **named: Any) -> Any:
        beside = seen()
        return tuple({**each, **beside} for each in run_turns(*arguments, **named))

    monkeypatch.setattr(runs_of_boards, "run_plan", run)
    monkeypatch.setattr(runs_of_boards, "run_turns", turns)


#: Pairs that can never be used are taken until the budget ends.
BRIEFLY = "--perf-budget=1s"


@dataclass
class HostRuns:
    pytester: pytest.Pytester
    device: FakeDevice
    #: The arguments that all runs of a module have.
    usual: tuple[str, ...] = ()

    def __call__(self, *arguments: str, model: str = STORED_MODEL) -> pytest.RunResult:
        fixed = ("--device=host", f"--model={model}", "--perf-dir=run", "-p", "no:cacheprovider")
        return self.pytester.runpytest_inprocess(*fixed, *self.usual, *arguments)

    def plain(self) -> dict[str, Any]:
        run: dict[str, Any] = json.loads((self.pytester.path / "run" / "run.json").read_text())
        return run

    def file(self) -> RunFile:
        return read_run_file(self.pytester.path / "run")

    def cases(self, kind: str = "") -> dict[str, dict[str, Any]]:
        """Return the last run's cases by their ids, those of a kind alone where one is named."""
        return {case["id"]: case for case in self.plain()["cases"] if kind in ("", case["kind"])}

    def outcomes(self) -> set[str]:
        return {case["outcome"] for case in self.cases().values()}


@pytest.fixture
def runs(pytester: pytest.Pytester, fake_device: FakeDevice, request: pytest.FixtureRequest) -> HostRuns:
    """Return what runs the plugin, with the arguments that the module calls usual."""
    return HostRuns(pytester=pytester, device=fake_device, usual=getattr(request.module, "USUAL", ()))


@pytest.fixture
def without_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the store hold nothing, so that stored times judge alone."""
    monkeypatch.setattr("perfsuite.measure.board.local_board.LocalBoard.kept_folder", lambda self, engine_id: None)


@pytest.fixture
def fake_opencl(fake_device: FakeDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeOpenCl:
    fake = FakeOpenCl(folder=tmp_path)
    replace_opencl(fake, monkeypatch)
    return fake


def _replace_sweeps(monkeypatch: pytest.MonkeyPatch, device: FakeDevice, folder: Any) -> None:
    """Replace what sweeps measure with; programs that are not the suite's are taken to be absent."""
    measurement = "perfsuite.experiments.scenario_bench"
    monkeypatch.setattr(f"{measurement}.replicates_of", lambda board, draw: lambda: (device.run_sweep(draw()),))
    monkeypatch.setattr(f"{measurement}.measure_memory", device.memory)
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.materialize", lambda weights, cache_dir: folder / f"{weights.name}.gguf"
    )
    absent = ("likwid-bench", "stream", "clpeak")
    monkeypatch.setattr("perfsuite.measure.independent_rates.absent_programs", lambda: absent)
