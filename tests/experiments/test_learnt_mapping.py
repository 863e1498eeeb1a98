"""Learning the mapping of a workload once, with made-up processes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from perfsuite.experiments.learnt_mapping import learnt_mapping
from perfsuite.experiments.recorder_traces import TracedRun
from perfsuite.measure.board.local_board import LocalBoard
from perfsuite.measure.opencl_backend import OpenClBackend
from perfsuite.measure.plan import LlamaPlan
from perfsuite.records.events import Phase
from perfsuite.trace.opencl.kernel_mapping import KernelMapping
from tests.synthetic_engine_kernels import ALONE, FUSED, Step, recorded
from tests.synthetic_opencl_backend import opencl_backend, opencl_plan

PHASES = (Phase.PREFILL, Phase.DECODE, Phase.DECODE)
ENDS = ((0, 1, 1, 1, 1), (0, 1, 1, 1, 1))
KERNELS = ("rms_norm_mul", "quantize", "mul_mat", "add")
ROLES = ("attn_norm", "Qcur", "Qcur", "l_out")


@dataclass
class Engine:
    """Runs plans, node by node without fusion, else with it; learns from them in a cache of its own."""

    folder: Path
    #: What a group is computed by.
    grouped: tuple[tuple[str, ...], ...] = FUSED
    plans: list[LlamaPlan] = field(default_factory=list)
    announced: list[str] = field(default_factory=list)

    def run(self, plan: LlamaPlan, *_: object) -> TracedRun:
        """Return what a process would bring."""
        self.plans.append(plan)
        is_grouped = plan.recorder == "groups"
        by_node = is_grouped and plan.group_ends == ((), ())
        kernels = ALONE if by_node else self.grouped if is_grouped else FUSED
        steps = [Step(phase=phase, kernels=kernels) for phase in PHASES]
        return TracedRun(payload={}, run=recorded(steps, group_ends=plan.group_ends, is_grouped=is_grouped))

    def learn(
        self, plan: LlamaPlan | None = None, backend: OpenClBackend | None = None, model: str = "synthetic:1"
    ) -> KernelMapping:
        """Return the mapping for a plan and a backend."""
        return learnt_mapping(
            plan or opencl_plan(self.folder),
            backend or opencl_backend(self.folder),
            LocalBoard(cache_dir=self.folder),
            model=model,
            cache_dir=self.folder / "cache",
            announce=self.announced.append,
        )


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    found = Engine(tmp_path)
    monkeypatch.setattr("perfsuite.experiments.learnt_mapping.traced_run", found.run)
    return found


def test_three_runs_teach_a_mapping(engine: Engine, tmp_path: Path) -> None:
    mapping = engine.learn(replace(opencl_plan(tmp_path), n_repetitions=3))
    single = opencl_plan(tmp_path)
    groups = replace(single, recorder="groups")
    assert engine.plans == [single, groups, replace(groups, group_ends=ENDS)]
    assert [mapping.roles_of(phase, KERNELS) for phase in (Phase.PREFILL, Phase.DECODE)] == [ROLES, ROLES]
    assert engine.announced == [
        "learning which kernels compute which operator: three runs, once for this build and device"
    ]


def test_a_mapping_is_learnt_once(engine: Engine, tmp_path: Path) -> None:
    first = engine.learn()
    assert engine.learn() == first
    assert (len(engine.plans), len(engine.announced)) == (3, 1)
    elsewhere: dict[str, Any] = {"cache_dir": "/elsewhere", "library_dir": "/engine"}
    engine.learn(replace(opencl_plan(tmp_path), n_repetitions=4, layout_seed=77, **elsewhere))
    assert len(engine.plans) == 3


def test_a_mapping_that_cannot_be_read_is_learnt_anew(engine: Engine, tmp_path: Path) -> None:
    first = engine.learn()
    (path,) = (tmp_path / "cache" / "mappings").iterdir()
    stored = path.read_bytes()
    path.write_text('{"sequences": [{"phase": "decode", "kernels": ["a", "b"], "roles": ["x"]}]}')
    assert engine.learn() == first
    assert len(engine.plans) == 6
    assert path.read_bytes() == stored


def test_what_may_change_a_kernel_is_learnt_again(engine: Engine, tmp_path: Path) -> None:
    """Another length, build, attention, file, backend, layer, driver or switch has a mapping of its own."""
    plan, backend = opencl_plan(tmp_path), opencl_backend(tmp_path)
    others: list[dict[str, Any]] = [{"n_prompt": 2}, {"engine_build_id": "2"}, {"flash_attn": not plan.flash_attn}]
    plans = [plan, *(replace(plan, **each) for each in others)]
    backends = [
        opencl_backend(tmp_path, driver_version="1.3"),
        replace(backend, settings={**backend.settings, "GGML_OPENCL_MM_F16_FORCE_L4": "1"}),
        replace(backend, compatibility_id="another"),
        replace(backend, library_id="another"),
    ]
    for asked in (*((each, backend) for each in plans), *((plan, each) for each in backends)):
        engine.learn(*asked)
    engine.learn(model="synthetic:2")
    n_learnt = len(plans) + len(backends) + 1
    assert len(list((tmp_path / "cache" / "mappings").iterdir())) == n_learnt
    assert len(engine.plans) == 3 * n_learnt
