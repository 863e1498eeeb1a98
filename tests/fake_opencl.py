"""The engine on a made-up OpenCL device, in place of everything that a run with ``--backend=opencl`` starts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.expectation.llama_workload import LlamaWorkload, llama_workload
from perfsuite.experiments import recorder_traces
from perfsuite.experiments.phases import opencl
from perfsuite.measure.board import runs
from perfsuite.measure.board.protocol import Board
from perfsuite.measure.engine import Engine
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import Phase
from perfsuite.records.opencl_commands import OpenClTrace
from perfsuite.trace.opencl.kernel_mapping import KernelMapping
from perfsuite.workload.scenario import find_scenario
from perfsuite.workload.weights import resolve
from tests.conftest import STORED_MODEL
from tests.synthetic_opencl_backend import CONTENDED, QUIET, opencl_backend
from tests.synthetic_opencl_run import mapping_of, run_of

#: Short, so that a made-up run is.
SCENARIO = "p8-g4"


@dataclass
class FakeOpenCl:
    """Answers what a run asks of OpenCL, with a little noise from a fixed seed."""

    folder: Path
    #: The device's type, as OpenCL spells it.
    kind: str = "cpu"
    driver_version: str = "1.2"
    #: Factors on the time of kernels, by name.
    slowdown: dict[str, float] = field(default_factory=dict)
    #: Commands that the layer lost.
    n_lost: int = 0
    contended: bool = False
    #: Changes what the layer recorded.
    altered: Callable[[OpenClTrace], OpenClTrace] = lambda trace: trace
    #: Changes what learning gives.
    learnt: Callable[[KernelMapping], KernelMapping] = lambda mapping: mapping
    mapping_error: Exception | None = None
    set_up_error: Exception | None = None
    #: What was set up, learnt and run.
    platforms: list[str | None] = field(default_factory=list)
    learnt_plans: list[LlamaPlan] = field(default_factory=list)
    plans: list[LlamaPlan] = field(default_factory=list)
    #: The commands of the process that ran last.
    trace: OpenClTrace = field(init=False)
    _random: random.Random = field(default_factory=lambda: random.Random(5))

    def set_up(self, _: Engine, platform: str | None, __: Path) -> OpenClBackend:
        self.platforms.append(platform)
        if self.set_up_error:
            raise self.set_up_error
        return opencl_backend(self.folder / "opencl", self.kind, driver_version=self.driver_version)

    def learn(self, plan: LlamaPlan, _: OpenClBackend, __: Board, *, announce: Any, **where: Any) -> KernelMapping:
        self.learnt_plans.append(plan)
        announce("learning")
        if self.mapping_error:
            raise self.mapping_error
        return self.learnt(mapping_of(self.workload(plan)))

    def run(self, plan: LlamaPlan, logs: Path) -> dict[str, Any]:
        """Return what a worker would send, and leave a log of what `trace` then has."""
        self.plans.append(plan)
        run = run_of(self.workload(plan), self.slowdown, self._random.uniform(1.0, 1.001))
        self.trace = self.altered(replace(run.trace, n_lost=self.n_lost))
        (logs / "opencl-1.log").touch()
        contention = dict(CONTENDED if self.contended else QUIET)
        return {"engine": run.record.to_plain(), "contention": contention, "peak_rss_bytes": 10**8}

    def roles_of(self, phase: Phase, kernel: str | None = None) -> tuple[str, ...]:
        """Return the roles of a phase's launches in the runs so far, of one kernel or of all."""
        (sequence,) = (each for each in mapping_of(self.workload(self.plans[0])).sequences if each.phase is phase)
        pairs = zip(sequence.kernels, sequence.roles, strict=True)
        return tuple(role for name, role in pairs if kernel in (None, name))

    def workload(self, plan: LlamaPlan) -> LlamaWorkload:
        scenario = find_scenario(f"p{plan.n_prompt}-g{plan.n_gen}")
        return llama_workload(resolve(STORED_MODEL, cache_dir=self.folder), scenario, flash_attn=plan.flash_attn)


def replace_opencl(fake: FakeOpenCl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfsuite.measure.opencl_backend.set_up_opencl", fake.set_up)
    monkeypatch.setattr(opencl, "learnt_mapping", fake.learn)
    others = runs.run_plan

    def run(board: Board, plan: Any, request: runs.RunRequest) -> dict[str, Any]:
        logs = request.environment.get("PERFSUITE_OPENCL_LOG")
        return others(board, plan, request) if logs is None else fake.run(plan, Path(logs))

    monkeypatch.setattr(runs, "run_plan", run)
    monkeypatch.setattr(recorder_traces, "read_opencl_log", lambda _: fake.trace)
